"""The spool: one append a call, private files, no call lost to rotation, a full disk survived."""

from __future__ import annotations

import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.capture.record import decode
from gateway.capture.segments import Segments
from gateway.capture.spool import Spool
from tests.gateway.capture.test_record import envelope
from tests.gateway.world import until


def requests_in(folder: Path) -> list[bytes]:
    data = [p.read_bytes() for p in sorted(folder.glob("*.spool"))]
    return [f.record.request for d in data for f in decode(memoryview(d)) if f.record]


def test_records_are_in_the_file_when_append_returns(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.start()
    for i in range(5):
        assert spool.append(envelope(), b"%d" % i, [b"a", b"b"])
        assert requests_in(tmp_path / "spool") == [b"%d" % j for j in range(i + 1)]
    (segment,) = (tmp_path / "spool").glob("*.spool")
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600
    assert stat.S_IMODE(segment.parent.stat().st_mode) == 0o700
    spool.close()


def test_many_pieces_are_one_record(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.append(envelope(), b"r", [b"x"] * 5000)
    (segment,) = tmp_path.glob("*.spool")
    (framed,) = decode(memoryview(segment.read_bytes()))
    assert framed.record is not None
    assert framed.record.response == b"x" * 5000
    spool.close()


def test_segments_rotate_by_size_and_by_age(tmp_path: Path) -> None:
    spool = Spool(tmp_path, rotate_bytes=500, rotate_s=0.05)
    spool.start()
    for i in range(10):
        spool.append(envelope(), b"%d" % i, [])
    segments = Segments(tmp_path)
    until(lambda: all(segments.read(n, 0).closed for n in segments.names()))
    assert len(segments.names()) > 2
    assert requests_in(tmp_path) == [b"%d" % i for i in range(10)]
    spool.close()


def test_a_segment_is_closed_only_when_its_owner_is_gone(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from gateway.capture.spool import Spool\n"
        "from tests.gateway.capture.test_record import envelope\n"
        "spool = Spool(Path(sys.argv[1])); spool.append(envelope(), b'mine', [])\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    segments = Segments(tmp_path)
    (name,) = segments.names()
    assert not segments.read(name, 0).closed
    process.kill()
    process.wait()
    piece = segments.read(name, 0)
    assert piece.closed
    assert [f.record.request for f in piece.frames if f.record] == [b"mine"]


@pytest.fixture
def full_disk():
    """No file may grow beyond 4 kB: writes fail as on a full disk, short first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_loses_the_record_but_nothing_before_or_after(tmp_path: Path, full_disk: None) -> None:
    spool = Spool(tmp_path)
    outcomes = [spool.append(envelope(), b"%d" % i, [b"x" * 900]) for i in range(6)]
    assert outcomes == [True, True, True, False, False, False]
    assert spool.failure is not None
    assert requests_in(tmp_path) == [b"0", b"1", b"2"]
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert spool.append(envelope(), b"after", [])
    assert spool.failure is None
    assert requests_in(tmp_path) == [b"0", b"1", b"2", b"after"], "half a record would hide the next"
    spool.close()


def test_a_folder_that_cannot_be_written_is_survived(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    spool = Spool(tmp_path / "file" / "spool")
    assert spool.append(envelope(), b"r", []) is False
    assert "file" in (spool.failure or "")
