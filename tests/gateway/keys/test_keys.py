"""Keys: shown once, kept as hashes, revoked for good, each within its project."""

from __future__ import annotations

import pytest

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ids import hash_key, new_id
from gateway.keys.service import create_key, revoke_key
from gateway.models import ApiKey, Project
from tests.gateway.world import seed


def project(name: str):
    with session_scope() as session:
        row = Project(name=name)
        session.add(row)
        session.flush()
        return row.id


def test_only_the_hash_is_kept(database: str) -> None:
    with session_scope() as session:
        row, key = create_key(session, project("p"), "app")
        id = row.id
    assert key.startswith("sd-")
    assert len(key) > 40
    with session_scope() as session:
        stored = session.get(ApiKey, id)
        assert stored is not None
        assert stored.hash == hash_key(key)
        assert key not in str({c.name: getattr(stored, c.name) for c in ApiKey.__table__.columns})
        assert key.startswith(stored.prefix)
        assert len(stored.prefix) < 10


def test_revoking_is_final_and_within_the_project(database: str) -> None:
    mine, theirs = project("mine"), project("theirs")
    with session_scope() as session:
        id = create_key(session, mine, "app")[0].id
    with session_scope() as session, pytest.raises(StepdownError) as refused:
        revoke_key(session, theirs, id)
    assert refused.value.status == 404
    with session_scope() as session:
        first = revoke_key(session, mine, id).revoked_at
        assert first is not None
        assert revoke_key(session, mine, id).revoked_at == first


def test_bad_wishes(database: str) -> None:
    with session_scope() as session:
        with pytest.raises(StepdownError, match="no project"):
            create_key(session, new_id(), "app")
        with pytest.raises(StepdownError, match="everything"):
            create_key(session, seed("http://u/v1").project_id, "app", capture="everything")
