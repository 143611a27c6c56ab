"""What may be set about the demo, all of it by environment variables, and the bar it declares before it looks.

Owns names and defaults; starts nothing.
"""

import json
import os
from dataclasses import dataclass, field
from typing import Any

from demo import wire
from demo.system import DemoError

STAND_IN = "frontier-large (stand-in)"
SCORER = "exact_all_fields"

# Declared before any answer of the student is looked at; below it the release is refused.
BARS: list[dict[str, Any]] = [
    {"kind": "judged", "name": "judged", "delta": 0.05},
    {"kind": "external", "name": SCORER, "bar": 0.80},
]


@dataclass(frozen=True)
class Upstream:
    """The frontier model: the scripted stand-in, or a provider's own."""

    name: str
    model: str
    base_url: str | None  # None: the stand-in, which the demo starts
    api_key: str
    prices: dict[str, str] | None  # USD per million tokens: input, cached_input, output
    terms: str

    @property
    def stand_in(self) -> bool:
        return self.base_url is None


@dataclass(frozen=True)
class Settings:
    """The demo's settings. Each field's variable stands beside it."""

    calls: int = 1500  # DEMO_CALLS: messages sent while the frontier model serves
    live_calls: int = 100  # DEMO_LIVE_CALLS: fresh messages sent after the student has taken over
    threads: int = 48  # DEMO_THREADS: the app's threads
    live_threads: int = 4  # DEMO_LIVE_THREADS: its threads once the student answers, on this very machine
    seed: int = 1  # DEMO_SEED: which messages
    delay_ms: float = 700  # DEMO_DELAY_MS: the stand-in's median time for an answer
    judge_delay_ms: float = 900  # DEMO_JUDGE_DELAY_MS: and for a judgement
    engine_usd_hour: str = "0.10"  # STEPDOWN_ENGINE_RATE_USD_HOUR: assumed price of the serving machine
    config: dict[str, Any] = field(default_factory=dict)  # DEMO_CONFIG: the run's settings, as JSON
    exit: bool = False  # DEMO_EXIT=1: stop everything after the report


def settings() -> Settings:
    """The settings of this environment. Raises DemoError that names the variable."""
    numbers: dict[str, Any] = {
        name: _number(f"DEMO_{name.upper()}", default)
        for name, default in vars(Settings()).items()
        if isinstance(default, int | float) and not isinstance(default, bool)
    }
    try:
        config = json.loads(os.environ.get("DEMO_CONFIG") or "{}")
    except ValueError as error:
        raise DemoError(f"DEMO_CONFIG is not valid JSON: {error}") from error
    return Settings(
        **numbers,
        config=config,
        exit=os.environ.get("DEMO_EXIT", "") not in ("", "0"),
        engine_usd_hour=os.environ.get("STEPDOWN_ENGINE_RATE_USD_HOUR", Settings.engine_usd_hour),
    )


def _number(name: str, default: float) -> float | int:
    text = os.environ.get(name)
    if not text:
        return default
    try:
        return type(default)(text)
    except ValueError as error:
        raise DemoError(f"{name} must be a number, got {text!r}.") from error


def upstream() -> Upstream:
    """DEMO_UPSTREAM=openai/<model> with OPENAI_API_KEY, else the stand-in. Raises DemoError for anything else."""
    chosen = os.environ.get("DEMO_UPSTREAM")
    if not chosen:
        return Upstream(
            name=STAND_IN,
            model=wire.MODEL,
            base_url=None,
            api_key=os.environ.get("DEMO_TEACHER_KEY", "sk-stand-in"),
            prices=None,
            terms="the demo's own stand-in: anything goes",
        )
    provider, _, model = chosen.partition("/")
    key = os.environ.get("OPENAI_API_KEY")
    if provider != "openai" or not model:
        raise DemoError(f"DEMO_UPSTREAM must read openai/<model>, got {chosen!r}.")
    if not key:
        raise DemoError("DEMO_UPSTREAM needs OPENAI_API_KEY: the key of the account that is to pay.")
    return Upstream(
        name=f"openai {model}",
        model=model,
        base_url=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        api_key=key,
        prices=_prices(),
        terms="asserted by whoever set DEMO_UPSTREAM: read your provider's terms on training with its output",
    )


def _prices() -> dict[str, str] | None:
    """DEMO_PRICES=input,cached,output in USD per million tokens; None where it is not set: cost stays unknown."""
    text = os.environ.get("DEMO_PRICES")
    if not text:
        return None
    parts = text.split(",")
    try:
        if [float(part) for part in parts] and len(parts) == 3:
            return dict(zip(("input", "cached_input", "output"), map(str.strip, parts), strict=True))
    except ValueError:
        pass
    raise DemoError(f"DEMO_PRICES must be three prices in USD per million tokens: input,cached,output; got {text!r}.")
