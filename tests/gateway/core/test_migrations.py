"""The migrations, run one after another, make the very tables that the models describe, and can be taken back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import zstandard
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from gateway.capture.bodies import load_request, load_response
from gateway.capture.repository import ensure_partitions
from gateway.core.db import engine, session_scope
from gateway.core.ids import new_id
from gateway.core.migrate import upgrade_head
from gateway.models import Base, Call
from tests.gateway.world import seed

MIGRATIONS = Path(__file__).parents[3] / "migrations"


def _differences() -> list[object]:
    with session_scope() as session:  # months are made as they come, and are no part of the models
        ensure_partitions(session)
    options = {"compare_type": True, "include_name": lambda name, kind, _: not _is_month(name, kind)}
    with engine().connect() as connection:
        found: list[object] = compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)
    return found


def _is_month(name: str | None, kind: str) -> bool:
    return kind == "table" and name is not None and re.fullmatch(r"call_\d{4}_\d{2}", name) is not None


@contextmanager
def _at(revision: str) -> Iterator[None]:
    """The database at an earlier revision; at the newest again afterwards."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine().connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
        connection.commit()
    try:
        yield
    finally:
        upgrade_head()


def test_migrations_make_what_the_models_say_and_can_be_taken_back(database: str) -> None:
    assert _differences() == []
    with _at("0001"), psycopg.connect(database) as connection:
        assert connection.execute("select version_num from alembic_version").fetchall() == [("0001",)]
    assert _differences() == []


def test_bodies_of_before_are_read_after(database: str) -> None:
    """Calls stored by the schema of 0003: hashes of 32 bytes as JSON, answers among the bodies."""
    rows = seed("http://127.0.0.1:9/v1")
    parts = [b'{"role":"user","content":"hi"}', b'["a large field"]', b'{"choices":[]}']
    digests = [hashlib.sha256(part).digest() for part in parts]
    fields = json.dumps({"model": "gpt-4o", "tools": {"$blob": digests[1].hex()}})
    call_id = new_id()
    with session_scope() as session:
        ensure_partitions(session)
    with _at("0003"), psycopg.connect(database) as connection:
        for digest, part in zip(digests, parts, strict=True):
            connection.execute(
                "INSERT INTO blob (project_id, hash, size, data) VALUES (%s, %s, %s, %s)",
                (rows.project_id, digest, len(part), zstandard.compress(part)),
            )
        connection.execute(
            "INSERT INTO call (id, project_id, received_at, endpoint, alias, served_by, streamed, status, complete,"
            " trainable, latency_ms, overhead_ms, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,"
            " preview, answer_preview, tags, request, message_hashes, response_hash) VALUES (%s, %s, now(),"
            " 'chat.completions', 'gpt-4o', 'upstream', false, 200, true, true, 1, 1, 1, 0, 1, 0, '', '', '{}',"
            " %s, %s, %s)",
            (call_id, rows.project_id, fields, json.dumps([digests[0].hex()]), digests[2]),
        )
    with session_scope() as session:
        call = session.get_one(Call, call_id)
        request, response = load_request(session, call), load_response(session, call)
        session.delete(call)
    assert request == {"model": "gpt-4o", "tools": ["a large field"], "messages": [{"role": "user", "content": "hi"}]}
    assert response == {"choices": []}
