"""Every endpoint but chat's is relayed byte for byte: recorded without its words where it is known, else not at all."""

from __future__ import annotations

import io
import socket

import httpx
import msgspec
import openai
import pytest
from sqlalchemy import update

from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.models import Route, Upstream
from tests.gateway.world import UPSTREAM_KEY, Reply, World, charges, chat_body, event, seed, stored_calls, streamed

EMBEDDING = b'{ "object":"list", "data":[{"embedding":[0.25],"index":0}], "usage":{"prompt_tokens":7,"total_tokens":7}}'
WORDS = "the patient is called Anna"


def add_route(world: World, alias: str, **fields: str) -> None:
    with session_scope() as session:
        session.add(Route(project_id=world.rows.project_id, alias=alias, upstream_id=world.rows.upstream_id, **fields))
    world.refresh()


def spooled() -> bytes:
    return b"".join(path.read_bytes() for path in settings().spool_dir.glob("*.spool"))


@pytest.mark.parametrize("path", ["/v1/embeddings", "/embeddings", "/v1/v1/embeddings/", "//v1//embeddings"])
def test_bytes_pass_and_tokens_are_charged(world: World, path: str) -> None:
    world.upstream.reply = Reply([EMBEDDING], headers={"content-type": "application/json", "x-request-id": "req_9"})
    sent = b'{"model" : "gpt-4o",  "input":"' + WORDS.encode() + b'"}'
    answer = world.post(sent, path, **{"openai-organization": "org-1"})
    assert (answer.status_code, answer.content, answer.headers["x-request-id"]) == (200, EMBEDDING, "req_9")
    assert answer.headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    (seen,) = world.upstream.seen
    assert (seen.path, seen.body, seen.header("openai-organization")) == ("/v1/embeddings", sent, "org-1")
    assert seen.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    assert b"Anna" not in spooled()
    (call,) = stored_calls()
    assert (call.endpoint, call.alias, call.prompt_tokens, call.complete) == ("embeddings", "gpt-4o", 7, True)
    assert (call.trainable, call.task_id, call.preview) == (False, None, "")
    assert [charge.call_id for charge in charges()] == [call.id]


def test_the_routes_name_for_the_model_is_put_into_json_and_forms(world: World) -> None:
    add_route(world, "whisper", upstream_model="whisper-large-v3")
    world.upstream.reply = Reply([b'{"text":"hello"}'])
    world.post({"model": "whisper", "input": "hi", "voice": "alloy"}, "/v1/audio/speech")
    assert msgspec.json.decode(world.upstream.seen[0].body) == {
        "model": "whisper-large-v3", "input": "hi", "voice": "alloy",
    }  # fmt: skip
    sound = bytes(range(256)) * 20
    world.client.post(
        "/v1/audio/transcriptions", data={"model": "whisper", "language": "en"}, files={"file": ("a.wav", sound)}
    )
    form = world.upstream.seen[1].body
    assert form.count(b"whisper-large-v3") == 1
    assert sound in form
    assert form.replace(b"whisper-large-v3", b"whisper").count(b'name="model"\r\n\r\nwhisper\r\n') == 1
    assert [(call.endpoint, call.alias) for call in stored_calls()] == [
        ("audio.speech", "whisper"), ("audio.transcriptions", "whisper"),
    ]  # fmt: skip


def test_a_form_that_needs_no_change_keeps_its_bytes(world: World) -> None:
    world.upstream.reply = Reply([b"{}"])
    boundary = b"--x\r\nContent-Disposition: form-data; name=model\r\n\r\ngpt-4o\r\n--x--\r\n"
    world.post(boundary, "/v1/images/edits", **{"content-type": "multipart/form-data; boundary=x"})
    assert world.upstream.seen[0].body == boundary
    (call,) = stored_calls()
    assert (call.endpoint, call.alias) == ("images.edits", "gpt-4o")


def test_objects_without_a_model_go_to_the_only_upstream(world: World) -> None:
    world.upstream.reply = Reply([b'{"id":"resp_1"}'])
    assert world.client.get("/v1/responses/resp_1", params={"include": "x"}).content == b'{"id":"resp_1"}'
    world.client.post("/v1/responses/resp_1/cancel")
    world.client.get("/v1/responses/resp_1/input_items")
    world.client.delete("/v1/responses/resp%2F1%3F")
    asked = [(seen.path, seen.query) for seen in world.upstream.seen]
    assert asked == [
        ("/v1/responses/resp_1", "include=x"), ("/v1/responses/resp_1/cancel", ""),
        ("/v1/responses/resp_1/input_items", ""), ("/v1/responses/resp%2F1%3F", ""),
    ]  # fmt: skip
    assert [call.endpoint for call in stored_calls()][:3] == [
        "responses.{id}", "responses.{id}.cancel", "responses.{id}.input_items",
    ]  # fmt: skip


def test_of_several_upstreams_the_catch_all_answers_what_names_no_model(world: World) -> None:
    with session_scope() as session:
        other = Upstream(
            project_id=world.rows.project_id, name="second", kind="openai", base_url=world.upstream.base_url
        )
        session.add(other)
        session.flush()
        session.add(Route(project_id=world.rows.project_id, alias="other", upstream_id=other.id))
    world.refresh()
    refused = world.client.get("/v1/files")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "route_missing")
    assert "alias *" in refused.json()["error"]["message"]
    add_route(world, "*")
    assert world.client.get("/v1/files").headers["x-stepdown-served-by"] == "upstream:shop-frontier"


def test_a_path_that_is_not_known_is_relayed_and_not_recorded(world: World) -> None:
    world.upstream.reply = Reply([b"made"], status=201, headers={"content-type": "text/plain"})
    answer = world.client.put("/v1/vector_stores/vs_1", content=b"\x00\xff not JSON")
    assert (answer.status_code, answer.content) == (201, b"made")
    assert world.upstream.seen[0].body == b"\x00\xff not JSON"
    assert stored_calls() == []


def test_no_path_leads_out_of_the_upstreams_base_url(world: World) -> None:
    host, port = world.url.removeprefix("http://").split(":")
    for path in ("/v1/../admin", "/v1/files/%2e%2e/%2E./admin", "/v1/./x", "/v1/files%2f..%2fadmin"):
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {world.rows.key}\r\n\r\n".encode())
            assert raw.recv(4096).startswith(b"HTTP/1.1 404 "), path
    assert world.upstream.seen == []


def test_tokens_are_told_by_the_last_event_where_words_are_not_kept(world: World) -> None:
    usage = {"input_tokens": 30, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}}
    done = {"id": "r", "status": "completed", "output": [], "usage": usage}
    pieces = [
        b"event: response.created\n" + event({"type": "response.created", "response": {"id": "r", "usage": None}}),
        b"event: response.output_text.delta\n" + event({"type": "response.output_text.delta", "delta": WORDS}),
        b"event: response.completed\n" + event({"type": "response.completed", "response": done}),
    ]
    world.upstream.reply = streamed(*pieces)
    asked = {"model": "gpt-4o", "input": "hi", "stream": True}
    answer = world.post(asked, "/v1/responses", **{"x-stepdown-capture": "metadata"})
    assert answer.content == b"".join(pieces)
    assert b"Anna" not in spooled()
    (call,) = stored_calls()
    assert (call.endpoint, call.streamed, call.complete) == ("responses", True, True)
    assert (call.prompt_tokens, call.completion_tokens, call.reasoning_tokens) == (30, 9, 4)


def test_a_file_called_model_is_not_the_model(world: World) -> None:
    add_route(world, "whisper", upstream_model="whisper-1")
    form = {"file": ("model", b"RIFF\r\n\r\ngpt-4o\r\n", "audio/wav"), "model": (None, "whisper")}
    answer = world.client.post("/v1/audio/transcriptions", files=form)
    assert answer.status_code == 200
    assert b'name="model"\r\n\r\nwhisper-1\r\n' in world.upstream.seen[0].body
    assert b"\r\n\r\ngpt-4o\r\n" in world.upstream.seen[0].body


def test_an_upstream_that_cuts_is_recorded_as_cut(world: World) -> None:
    world.upstream.reply = streamed(event({"type": "response.created"}), cut=True)
    with pytest.raises(httpx.RemoteProtocolError):
        world.post({"model": "gpt-4o", "input": "hi", "stream": True}, "/v1/responses")
    (call,) = stored_calls()
    assert (call.complete, call.error is not None) == (False, True)


def test_an_upstream_that_is_translated_for_answers_chat_alone(world: World) -> None:
    with session_scope() as session:
        session.execute(update(Upstream).values(kind="litellm", model="anthropic/claude"))
    world.refresh()
    refused = world.post({"model": "gpt-4o", "input": "x"}, "/v1/embeddings")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "endpoint_not_spoken")


def test_models_are_the_projects_own_and_the_catch_alls(world: World) -> None:
    theirs = {"id": "gpt-9", "object": "model", "created": 5, "owned_by": "them"}
    world.upstream.reply = Reply([msgspec.json.encode({"object": "list", "data": [theirs, {"id": "gpt-4o"}]})])
    assert [model["id"] for model in world.client.get("/v1/models").json()["data"]] == ["gpt-4o"]
    assert world.upstream.seen == []
    add_route(world, "*")
    listed = world.client.get("/v1/models").json()
    assert listed["data"][1:] == [theirs]
    assert listed["data"][0]["owned_by"] == "stepdown"
    assert world.upstream.seen[0].header("authorization") == f"Bearer {UPSTREAM_KEY}"
    world.upstream.reply = Reply([msgspec.json.encode(theirs)])
    assert world.client.get("/v1/models/gpt-9").json() == theirs
    assert world.client.get("/v1/models/gpt-4o").json()["owned_by"] == "stepdown"
    world.upstream.reply = Reply([b"down"], status=500)
    assert [model["id"] for model in world.client.get("/v1/models").json()["data"]] == ["gpt-4o"]


def test_the_openai_client_finds_its_endpoints(world: World) -> None:
    client = openai.OpenAI(base_url=f"{world.client.base_url}/v1", api_key=world.rows.key, max_retries=0)
    world.upstream.reply = Reply([EMBEDDING])
    assert client.embeddings.create(model="gpt-4o", input="x", encoding_format="float").data[0].embedding == [0.25]
    world.upstream.reply = Reply([b'{"text":"hello"}'])
    assert client.audio.transcriptions.create(model="gpt-4o", file=("a.wav", io.BytesIO(b"RIFF"))).text == "hello"
    world.upstream.reply = Reply([b"\x00\x01sound"], headers={"content-type": "audio/mpeg"})
    assert client.audio.speech.create(model="gpt-4o", voice="alloy", input="x").content == b"\x00\x01sound"


def test_a_key_of_another_project_reaches_its_own_upstream_alone(world: World) -> None:
    other = seed(world.upstream.base_url, name="other", alias="other-model")
    world.refresh()
    theirs = {"authorization": f"Bearer {other.key}"}
    assert world.post({"model": "gpt-4o"}, "/v1/embeddings", **theirs).status_code == 404
    world.upstream.reply = Reply([chat_body()])
    assert world.client.get("/v1/files", headers=theirs).headers["x-stepdown-served-by"] == "upstream:other-frontier"
