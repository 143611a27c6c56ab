"""Owns the deterministic checks: what can be seen without asking a model costs no call. Knows no rubric."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


def _object(output: str) -> dict[str, Any] | None:
    try:
        value = json.loads(output)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _json_object(output: str, _: Mapping[str, Any]) -> bool:
    return _object(output) is not None


def _json_keys(output: str, options: Mapping[str, Any]) -> bool:
    value = _object(output)
    return value is not None and set(value) == set(options["keys"])


def _one_of(output: str, options: Mapping[str, Any]) -> bool:
    return output.strip() in options["values"]


def _max_chars(output: str, options: Mapping[str, Any]) -> bool:
    return len(output) <= int(options["limit"])


def _not_empty(output: str, _: Mapping[str, Any]) -> bool:
    return bool(output.strip())


_KINDS: dict[str, tuple[Callable[[str, Mapping[str, Any]], bool], tuple[str, ...]]] = {
    "json_object": (_json_object, ()),
    "json_keys": (_json_keys, ("keys",)),
    "one_of": (_one_of, ("values",)),
    "max_chars": (_max_chars, ("limit",)),
    "not_empty": (_not_empty, ()),
}


@dataclass(frozen=True, slots=True)
class Check:
    """A test of the output alone. `kind` is one of json_object, json_keys {keys}, one_of {values}, max_chars {limit},
    not_empty. An output that fails one gets reward 0. Raises ValueError for an unknown kind or a missing option."""

    kind: str
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"there is no check {self.kind!r}: choose one of {', '.join(sorted(_KINDS))}")
        missing = [name for name in _KINDS[self.kind][1] if name not in self.options]
        if missing:
            raise ValueError(f"the check {self.kind} needs {', '.join(missing)}")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["kind"], {key: value for key, value in data.items() if key != "kind"})

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.options}

    def passes(self, output: str) -> bool:
        return _KINDS[self.kind][0](output, self.options)
