#!/usr/bin/env bash
# Installs TRL into .bench/trl, apart from Stepdown's own environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TRL=1.16.0
TORCH=2.13.0
stamp=.bench/trl/.stepdown
if [[ ! -f $stamp || $(<"$stamp") != "$TRL $TORCH" ]]; then
    echo "Installing TRL $TRL beside torch $TORCH into .bench/trl"
    options=()
    eval "$(.venv/bin/python .ci/uv_env.py)"
    if ! compgen -G "$(sed 's/,.*//' <<<"${UV_FIND_LINKS:-/none}")/torch-$TORCH*cp311*.whl" >/dev/null; then
        options+=(--torch-backend cpu)
    fi
    mkdir -p .bench
    .venv/bin/uv venv -q --clear -p .venv/bin/python .bench/trl
    .venv/bin/uv pip install -q --compile-bytecode --python .bench/trl/bin/python "${options[@]}" \
        "trl==$TRL" "torch==$TORCH" peft datasets
    printf '%s' "$TRL $TORCH" >"$stamp"
fi
