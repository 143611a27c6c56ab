"""Set-up hands pip's configuration on to uv, lists its targets, and says in one line what stops it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "SSL_", "MAKE"))}
    return subprocess.run(command, cwd=cwd, env={**keep, **env}, capture_output=True, text=True, check=False)


def test_pips_configuration_reaches_uv(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://mirror.test/simple\ncert = /etc/ours.pem\ntrusted-host = mirror.test\n"
        "extra-index-url = file:///disk/simple https://other.test/simple\nfind-links = /a\n    /b\n"
    )
    script = str(ROOT / ".ci/uv_env.py")
    env = {"PIP_CONFIG_FILE": str(config), "PIP_FIND_LINKS": "/wheels", "UV_INSECURE_HOST": "x"}
    exports = run(sys.executable, script, **env).stdout
    assert "export UV_DEFAULT_INDEX=https://mirror.test/simple" in exports
    assert "export UV_INDEX=https://other.test/simple" in exports
    assert "export UV_FIND_LINKS=/wheels" in exports  # the environment wins, as for pip
    assert "export SSL_CERT_FILE=/etc/ours.pem" in exports
    assert "UV_INSECURE_HOST" not in exports  # what is set already stays


def test_help_is_the_default_and_lists_every_target() -> None:
    listed = run("make").stdout
    for target in ("setup", "demo", "run", "test", "lint", "format", "web", "clean"):
        assert f"make {target} " in listed


def test_a_missing_python_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    for name in ("setup.sh", "uv_env.py"):
        (tmp_path / ".ci" / name).write_text((ROOT / ".ci" / name).read_text())
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "dirname", "mkdir", "flock", "wc", "touch", "df", "awk", "uname", "cut"):
        where = next(Path(folder) / tool for folder in ("/usr/bin", "/bin") if (Path(folder) / tool).exists())
        (tmp_path / "bin" / tool).symlink_to(where)
    script = str(tmp_path / ".ci/setup.sh")
    refused = run("/bin/bash", script, cwd=tmp_path, PATH=str(tmp_path / "bin"), PYTHON="nowhere")
    assert refused.returncode == 1
    assert "Python 3.11 was not found" in refused.stderr
    assert not (tmp_path / ".venv").exists()
