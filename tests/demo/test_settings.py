"""The demo's environment variables: defaults, values, and one clear line for each mistake."""

import pytest

from demo.settings import BARS, settings, upstream
from demo.system import DemoError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CALLS", "DELAY_MS", "CONFIG", "EXIT", "UPSTREAM", "PRICES", "SEED"):
        monkeypatch.delenv(f"DEMO_{name}", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_defaults() -> None:
    assert settings().calls == 1500
    assert settings().exit is False
    assert upstream().stand_in
    assert "stand-in" in upstream().name


def test_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CALLS": "50", "DELAY_MS": "5", "EXIT": "1", "CONFIG": '{"grpo_steps": 2}'}.items():
        monkeypatch.setenv(f"DEMO_{name}", value)
    assert (settings().calls, settings().delay_ms, settings().exit) == (50, 5.0, True)
    assert settings().config == {"grpo_steps": 2}


@pytest.mark.parametrize(("name", "value"), [("CALLS", "many"), ("CONFIG", "{")])
def test_mistakes_name_the_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"DEMO_{name}", value)
    with pytest.raises(DemoError, match=f"DEMO_{name}"):
        settings()


def test_a_real_upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_UPSTREAM", "openai/gpt-x")
    with pytest.raises(DemoError, match="OPENAI_API_KEY"):
        upstream()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    chosen = upstream()
    assert (chosen.model, chosen.stand_in, chosen.prices) == ("gpt-x", False, None)
    monkeypatch.setenv("DEMO_PRICES", "1.25, 0.125, 10")
    assert upstream().prices == {"input": "1.25", "cached_input": "0.125", "output": "10"}


@pytest.mark.parametrize(
    ("name", "value"), [("UPSTREAM", "gpt-x"), ("UPSTREAM", "other/x"), ("PRICES", "1,2"), ("PRICES", "a,b,c")]
)
def test_a_real_upstream_mistaken(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setenv("DEMO_UPSTREAM", "openai/gpt-x")
    monkeypatch.setenv(f"DEMO_{name}", value)
    with pytest.raises(DemoError, match=f"DEMO_{name}"):
        upstream()


def test_the_declared_bar() -> None:
    assert {bar["kind"]: bar.get("bar", bar.get("delta")) for bar in BARS} == {"judged": 0.05, "external": 0.80}
