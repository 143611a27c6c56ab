"""The scripted teacher as a process of its own, answering fast."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def teacher_key() -> str:
    return "sk-test"


@pytest.fixture(scope="session")
def teacher_url(teacher_key: str) -> Iterator[str]:
    """Its base URL. Ends it by SIGTERM, which has to leave no error."""
    command = [sys.executable, "-m", "demo.teacher", "--delay-ms", "20", "--judge-delay-ms", "20"]
    environment = {**os.environ, "DEMO_TEACHER_KEY": teacher_key}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout
        yield json.loads(process.stdout.readline())["base_url"]
        process.terminate()
        assert process.wait(10) == 0
