"""What the scripted teacher answers: careful reading, minus its blind spots, plus random slips.

Owns the teacher's errors, all of them stated here. It sees the messages alone, and judges elsewhere
(`demo.judging`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from demo import grammar, guessing, phrases
from demo.reading import Reading, read

SLIP_RATE = 0.04  # share of messages with one field wrong at random
BLIND_RATE = 0.65  # share of the messages of a blind spot that the teacher gets wrong

VALUES: dict[str, tuple[str | bool, ...]] = {
    "category": phrases.CATEGORIES,
    "urgency": grammar.URGENCIES,
    "product": grammar.PRODUCTS,
    "needs_human": (True, False),
}


def is_triage(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a system message asks for the four fields of the demo's job."""
    text = " ".join(guessing.text_of(m) for m in messages if m.get("role") in ("system", "developer"))
    return all(field in text for field in grammar.FIELDS)


def reply(messages: Sequence[Mapping[str, Any]], seed: int, response_format: Mapping[str, Any] | None = None) -> str:
    """The teacher's answer to a chat; on another job than the demo's a plain guess (`demo.guessing`)."""
    if not is_triage(messages):
        return guessing.guess(messages, response_format)
    return grammar.answer(triage(guessing.last_user_text(messages), seed))


def triage(text: str, seed: int) -> dict[str, str | bool]:
    """The four fields as the teacher sees them: same text and seed, same answer."""
    reading = read(text)
    fields = blind(reading) if chance(f"blind|{seed}|{text}") < BLIND_RATE else reading.fields()
    if chance(f"slip|{seed}|{text}") < SLIP_RATE:
        fields = misread(fields, f"{seed}|{text}")
    return fields


def blind(reading: Reading) -> dict[str, str | bool]:
    """The systematic errors: a deadline only implied, a threat, and a refund once a renewal is mentioned."""
    fields = reading.fields()
    if reading.only_deadline:
        fields["urgency"] = "normal"
    if reading.only_threat:
        fields["needs_human"] = False
    if reading.renewal and reading.category == "refund":
        fields["category"] = "billing"
    return fields


def misread(fields: Mapping[str, str | bool], key: str) -> dict[str, str | bool]:
    """The fields with one of them wrong, which and how decided by `key`."""
    field = grammar.FIELDS[int(chance(f"field|{key}") * len(grammar.FIELDS))]
    others = [value for value in VALUES[field] if value != fields[field]]
    return {**fields, field: others[int(chance(f"value|{key}") * len(others))]}


def chance(key: str) -> float:
    """A number in [0, 1) that depends on `key` alone."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big") / 2**56
