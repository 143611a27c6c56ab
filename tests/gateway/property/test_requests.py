"""Reading what a client sent beside its body: any path and any header bytes are read without a fault."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.proxy.headers import ClientHeaders, acceptable, header_value, to_client
from gateway.proxy.http1 import head_of
from gateway.proxy.paths import CHAT, endpoint_of, is_known, name_of

WORD = st.sampled_from(["v1", "chat", "completions", "models", "embeddings", "%2F", "..", "é", "V1", "openai"])
PATHS = st.lists(WORD | st.text(max_size=4), max_size=6).map(lambda words: "/" + "/".join(words))
NAMES = st.sampled_from(
    b"authorization api-key x-api-key content-length content-encoding content-type connection accept-encoding expect "
    b"x-stepdown-task x-stepdown-capture x-stepdown-more cookie host te idempotency-key openai-project".split()
) | st.binary(min_size=1, max_size=10).map(bytes.lower)
# No server hands on a header with a line break in it.
VALUES = st.binary(max_size=20).filter(lambda value: not set(b"\r\n\0") & set(value)) | st.sampled_from(
    [b"Bearer sd-1", b"bearer", b"\xb2", b"9" * 5000, b"-1", b"close, x-mine", b"gzip;q=0, br", b"100-Continue", b","]
)
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=12)


@given(PATHS)
def test_slashes_and_doubled_versions_do_not_count(path: str) -> None:
    endpoint = endpoint_of(path)
    for same in (f"{path}/", path.replace("/", "//"), f"/v1{path}" if path.startswith("/v1/") else path):
        assert endpoint_of(same) == endpoint
    if endpoint is not None:
        assert endpoint_of(f"/v1/{endpoint}") == endpoint
        assert isinstance(is_known(endpoint), bool)
        assert name_of(endpoint).count(".") <= endpoint.count("/") + endpoint.count(".")


@given(st.lists(st.sampled_from(["/", "//", "/v1"]), max_size=3).map("".join))
def test_chat_is_found_under_every_spelling(prefix: str) -> None:
    assert endpoint_of(f"{prefix}/chat/completions") == CHAT


@given(HEADERS)
def test_any_header_is_read_and_none_of_ours_sent_on(raw: list[tuple[bytes, bytes]]) -> None:
    headers = ClientHeaders(raw)
    sent = headers.to_upstream("sk-theirs", stream=False)
    assert [value for name, value in sent if name == b"authorization"] == [b"Bearer sk-theirs"]
    names = {name.lower() for name, _ in sent}
    assert not names & set(b"host content-length connection te cookie api-key x-api-key expect".split())
    assert not [name for name in names if name.startswith(b"x-stepdown-")]
    assert headers.length is None or headers.length >= 0


@given(st.lists(st.tuples(st.sampled_from([b"idempotency-key", b"openai-project"]), VALUES)))
def test_values_are_sent_on_as_the_bytes_that_came(raw: list[tuple[bytes, bytes]]) -> None:
    head = head_of("POST", "x", "/v1", ClientHeaders(raw).to_upstream("", stream=False), 2)
    lines = [line for line in head.split(b"\r\n") if line.startswith((b"idempotency-key", b"openai-project"))]
    assert lines == [b"%s: %s" % pair for pair in raw]


@given(st.lists(st.tuples(NAMES, VALUES)), st.text())
def test_any_upstreams_header_is_passed_back_lowered(raw: list[tuple[bytes, bytes]], name: str) -> None:
    back = to_client(raw, [(b"x-stepdown-request-id", b"1")])
    assert [n for n, _ in back if n.startswith(b"x-stepdown-")] == [b"x-stepdown-request-id"]
    assert not {n for n, _ in back} & {b"content-length", b"connection", b"te", b"set-cookie", b"transfer-encoding"}
    assert header_value(name).isascii()


@given(st.text(max_size=40))
def test_what_we_ask_for_can_be_read_by_us(accept: str) -> None:
    for coding in acceptable(accept).decode().split(","):
        assert coding.partition(";")[0].strip().lower() in ("gzip", "deflate", "zstd", "identity")
