"""Bodies of any bytes under any encoding, and JSON of any kind: read, changed and written without a fault."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import jsontext
from gateway.core.compression import ENCODINGS, TooLarge, decompress

PACKED = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress,
    "identity": bytes,
}  # fmt: skip
CODINGS = st.sampled_from(sorted(PACKED))


@given(st.binary(max_size=300), CODINGS)
def test_what_was_packed_is_unpacked_up_to_the_limit(body: bytes, encoding: str) -> None:
    packed = PACKED[encoding](body)
    assert decompress(packed, encoding) == decompress(packed, encoding, len(body)) == body
    if body:
        with pytest.raises(TooLarge):
            decompress(packed, encoding, len(body) - 1)


@given(st.binary(max_size=100), CODINGS, st.integers(0, 60), st.binary(max_size=5), st.none() | st.integers(0, 50))
def test_damage_is_a_value_error(body: bytes, encoding: str, at: int, junk: bytes, limit: int | None) -> None:
    packed = PACKED[encoding](body)
    for damaged in (packed[:at], packed[:at] + junk + packed[at + 1 :], junk + packed, junk):
        try:
            assert limit is None or len(decompress(damaged, encoding, limit)) <= limit
        except ValueError:
            continue


def test_a_small_body_that_would_fill_the_memory_is_stopped() -> None:
    for encoding in set(ENCODINGS) - {"identity"}:
        bomb = PACKED[encoding](bytes(50_000_000))
        with pytest.raises(TooLarge):
            decompress(bomb, encoding, 1_000_000)


TEXT = st.text(max_size=8) | st.sampled_from(["\ud83d", "\udf1e", "\0", "model"])
NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)


@given(VALUES)
def test_what_is_read_can_be_written_and_stored(value: Any) -> None:
    read = jsontext.decode(json.dumps(value).encode())
    again = jsontext.decode(jsontext.encode(read))
    assert json.dumps(jsontext.joined(again)) == json.dumps(jsontext.joined(read))
    msgspec.json.encode(jsontext.storable(read))


@given(st.binary(max_size=50) | VALUES.map(lambda value: json.dumps(value).encode()[:-1]))
def test_what_is_no_json_is_a_value_error(data: bytes) -> None:
    try:
        jsontext.decode(data)
    except ValueError:
        return


@given(st.dictionaries(TEXT, VALUES | st.just(float("inf")), max_size=5), VALUES)
def test_a_changed_field_leaves_the_others(body: dict[str, Any], value: Any) -> None:
    sent = json.dumps(body).encode()
    changed = jsontext.decode(jsontext.changed(sent, model=value))
    assert json.dumps(jsontext.joined(changed)) == json.dumps(jsontext.joined(body | {"model": value}))
