"""A setting that cannot be: one line that names its variable."""

from __future__ import annotations

import pytest

from gateway.core.errors import StepdownError
from gateway.core.settings import settings


@pytest.mark.parametrize(
    ("variable", "value"),
    [("STEPDOWN_PORT", "abc"), ("STEPDOWN_PORT", "99999"), ("STEPDOWN_LOG_LEVEL", "loud"), ("STEPDOWN_HANGUP", "no")],
)
def test_a_setting_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    settings.cache_clear()
    try:
        with pytest.raises(StepdownError) as refusal:
            settings()
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert f"{variable}='{value}'" in str(refusal.value)
    assert "\n" not in str(refusal.value)
