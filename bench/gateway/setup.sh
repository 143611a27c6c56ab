#!/usr/bin/env bash
# Installs the gateways that ours is measured beside into .bench/, apart from Stepdown's own environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

for program in wrk nginx; do
    PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null ||
        { echo "bench: $program is missing (Debian, Ubuntu: apt install wrk nginx-light)" >&2; exit 1; }
done
mkdir -p .bench/portkey
if [[ ! -x .bench/venv/bin/litellm ]]; then
    .venv/bin/uv venv -q -p .venv/bin/python .bench/venv
    .venv/bin/uv pip install -q --python .bench/venv/bin/python 'tensorzero==2026.6.0' 'litellm[proxy]'
fi
if [[ ! -d .bench/portkey/node_modules ]]; then
    cat >.bench/portkey/package.json <<'JSON'
{"private": true, "dependencies": {"@portkey-ai/gateway": "1.15.2"},
 "overrides": {"hono": "4.6.20", "@hono/node-server": "1.13.8"}}
JSON
    (cd .bench/portkey && PATH="$PWD/../../.venv/node:$PATH" npm install --silent --no-audit --no-fund)
fi
