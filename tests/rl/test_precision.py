"""The type that models compute in: bf16 only where the CPU multiplies it."""

from pathlib import Path

import pytest
import torch

from gateway.core import cpu
from rl import precision
from rl.rollout.server import ServerSpec, VllmServer
from rl.trainer import Trainer


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a GPU whose /proc/cpuinfo the test writes."""
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(cpu, "_CPUINFO", cpuinfo)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    precision.native_precision.cache_clear()
    return cpuinfo


@pytest.fixture(autouse=True)
def _forget() -> object:
    yield
    precision.native_precision.cache_clear()


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("flags\t\t: fpu sse2 avx avx2 avx512f avx512_bf16\n", "bfloat16"),
        ("flags\t\t: fpu avx2 amx_bf16 amx_tile\n", "bfloat16"),
        ("processor\t: 0\nFeatures\t: fp asimd bf16\n", "bfloat16"),
        ("flags\t\t: fpu sse2 avx avx2\nbugs\t\t: bf16\n", "float32"),
        ("flags\t\t: fpu avx2 avx512f avx512vl\n", "float32"),
        ("", "float32"),
    ],
)
def test_bf16_is_used_where_the_cpu_multiplies_it(machine: Path, cpuinfo: str, expected: str) -> None:
    machine.write_text(cpuinfo)
    assert precision.native_precision() == expected


def test_a_machine_that_lists_no_features_computes_in_float32(machine: Path) -> None:
    assert precision.native_precision() == "float32"


@pytest.mark.parametrize("flag", ["avx512_bf16", "avx2"])
def test_trainer_and_engine_compute_in_the_same_type(machine: Path, tiny_dir: Path, tmp_path: Path, flag: str) -> None:
    machine.write_text(f"flags : fpu {flag}\n")
    wanted = precision.native_precision()
    weights = tmp_path / "merged"
    trainer = Trainer(tiny_dir)
    trainer.export_merged(weights)
    flags = VllmServer(ServerSpec(weights, tmp_path / "log"))._flags()
    assert flags[flags.index("--dtype") + 1] == wanted
    assert {layer.merged.dtype for layer in trainer.layers} == {getattr(torch, wanted)}
