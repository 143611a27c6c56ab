"""Prints, as shell exports, what uv needs to know of how pip is configured here: uv does not read pip's files.

Usage: eval "$(python .ci/uv_env.py)". Variables that are already set win.
"""

import os
import shlex
import subprocess
import sys

NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}


def configured() -> dict[str, str]:
    """pip's settings by name; the environment wins over [install], which wins over [global]."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    found: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):
        for line in listed.stdout.splitlines():
            key, separator, value = line.partition("=")
            if separator and key.startswith(section):
                found[key.removeprefix(section)] = " ".join(shlex.split(value.replace("\\n", " ")))
    return found


def main() -> None:
    exports: dict[str, str] = {}
    for name, value in configured().items():
        variable = NAMES.get(name)
        words = value.split()
        if variable == "UV_INDEX":
            words = [word for word in words if not word.startswith("file:")]
            if words:
                exports["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # all indexes count the same, as for pip
        if variable and words:
            exports[variable] = ",".join(words) if variable == "UV_FIND_LINKS" else " ".join(words)
    for variable, value in exports.items():
        if not os.environ.get(variable):
            print(f"export {variable}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
