-- What wrk sends, and what it says at the end: one JSON line.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")
for name, value in string.gmatch(os.getenv("BENCH_HEADERS"), "([^\n:]+): ([^\n]+)") do
  wrk.headers[name] = value
end

-- Milliseconds that a connection rests before its next request, for a load below the greatest.
local rest = tonumber(os.getenv("BENCH_DELAY_MS") or "0")
if rest > 0 then
  function delay()
    return rest
  end
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('\n{"requests": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, failed))
end
