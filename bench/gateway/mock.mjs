// The upstream of the bench: node mock.mjs PORT. Answers a chat completion at once, or as a stream of 20 chunks; with
// "user":"gap:10" in the body one chunk every 10 ms.
import { createServer } from "node:http";

const id = "chatcmpl-bench";
const usage = { prompt_tokens: 40, completion_tokens: 20, total_tokens: 60 };
const text = "Your parcel left our warehouse this morning and should reach you tomorrow.";
const whole = Buffer.from(
  JSON.stringify({
    id,
    object: "chat.completion",
    created: 1,
    model: "gpt-4o",
    choices: [
      { index: 0, message: { role: "assistant", content: text, refusal: null }, logprobs: null, finish_reason: "stop" },
    ],
    usage,
  }),
);
const chunk = (delta, finish_reason, more = {}) =>
  `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 1, model: "gpt-4o", choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`;
const chunks = [
  chunk({ role: "assistant", content: "" }, null),
  ...Array.from({ length: 18 }, (_, i) => chunk({ content: ` word${i}` }, null)),
  chunk({}, "stop"),
];
const end = `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 1, model: "gpt-4o", choices: [], usage })}\n\ndata: [DONE]\n\n`;

const slowly = (response, pieces, gap) => {
  const timer = setInterval(() => {
    response.write(pieces.shift());
    if (pieces.length) return;
    clearInterval(timer);
    response.end();
  }, gap);
};

createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    if (body.includes('"stream":true')) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const gap = Number(/"user":"gap:(\d+)"/.exec(body)?.[1]);
      if (gap) return slowly(response, [...chunks, end], gap);
      for (const piece of chunks) response.write(piece);
      response.end(end);
    } else {
      response.writeHead(200, { "content-type": "application/json", "content-length": whole.length });
      response.end(whole);
    }
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
