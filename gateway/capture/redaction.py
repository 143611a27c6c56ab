"""Owns taking out of a call's words what must not be kept, before anything of it is hashed or written.

Works on decoded strings, so that no escape hides anything, and in time linear in the text (RE2). Must not touch what
the client or the upstream gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import re2

from gateway.core.errors import StepdownError

_LONGEST = 1_000
_QUIET = re2.Options()
_QUIET.log_errors = False
_NAMED = {
    "email": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
    "phone": r"(?:\+|\b00)[1-9][0-9 ()./-]{6,18}[0-9]\b|\(?\b[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}\b",
    "credit_card": r"\b(?:[0-9][ -]?){12,18}[0-9]\b",
    "iban": r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b",
    "ipv4": r"\b(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\b",
    "us_ssn": r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b",
    "secret": r"\b(?:sk|pk|rk|sd|sdp|ghp|gho|ghs|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,}\b|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{35}\b|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
}
NAMES = tuple(_NAMED)
"""What can be asked for by name."""


def _is_card(digits: str) -> bool:
    """Luhn's check (ISO/IEC 7812-1, annex B): most long numbers are not cards."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


Rule = Mapping[str, str]
"""`{"name": one of NAMES}`, or `{"pattern": RE2 expression, "replacement": text}`."""


class Redactor:
    """Rules ready for use. Raises StepdownError (422) that names the rule that is none."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._steps = [_step(rule) for rule in rules]

    def text(self, value: str) -> str:
        """A text without what the rules find."""
        for step in self._steps:
            value = step(value)
        return value

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it redacted, the names of fields too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(item) for name, item in value.items()}
        return value


def _step(rule: Rule) -> Callable[[str], str]:
    name, pattern = rule.get("name"), rule.get("pattern")
    if name is not None:
        if name not in _NAMED:
            raise _invalid(f"There is no rule named {name!r}", f"Choose from {', '.join(NAMES)}, or give a `pattern`.")
        found = re2.compile(_NAMED[name], _QUIET)
        if name == "credit_card":
            return lambda text: str(found.sub(_without_card, text))
        return lambda text: str(found.sub(f"[{name}]", text))
    if not pattern or len(pattern) > _LONGEST:
        raise _invalid("A rule needs a `name`, or a `pattern` of up to 1,000 characters", "Give one of them.")
    try:
        own = re2.compile(pattern, _QUIET)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise _invalid(f"The pattern {pattern[:80]!r} is no RE2 expression: {reason}", "Correct it.") from None
    put = rule.get("replacement", "[redacted]")
    return lambda text: str(own.sub(lambda _: put, text))


def _without_card(match: Any) -> str:
    return "[credit_card]" if _is_card(re.sub(r"\D", "", match.group(0))) else str(match.group(0))


def _invalid(what: str, hint: str) -> StepdownError:
    return StepdownError(422, "redaction_rule", f"{what}.", hint=hint, param="redact")


@lru_cache(maxsize=256)
def redactor(rules: bytes) -> Redactor | None:
    """The redactor of rules as JSON, compiled once; None for no rules."""
    found = msgspec.json.decode(rules, type=list[dict[str, str]])
    return Redactor(found) if found else None
