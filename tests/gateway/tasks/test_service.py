"""Tasks: names, slugs, one task a prompt shape, earlier calls adopted."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ids import new_id
from gateway.models import Call
from gateway.tasks import service
from tests import seeded

pytestmark = pytest.mark.usefixtures("database")


def expect(code: str, status: int) -> Any:
    return pytest.raises(StepdownError, check=lambda error: (error.code, error.status) == (code, status))


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Support triage", "support-triage"),
        ("Éxtraction: v2!", "extraction-v2"),
        ("日本", "task"),
        ("a" * 90, "a" * 48),
    ],
)
def test_slugs_are_plain(text: str, slug: str) -> None:
    assert service.slugify(text) == slug


def test_a_title_is_the_first_words_of_the_system_prompt() -> None:
    assert service.title_of("You are a support triage assistant. Sort tickets.") == "A support triage assistant"
    assert service.title_of("") == ""


def test_equal_names_get_slugs_of_their_own_and_taken_slugs_are_refused() -> None:
    with session_scope() as session:
        owner = seeded.project(session).id
        slugs = [service.create_task(session, owner, name="Triage").slug for _ in range(3)]
        assert slugs == ["triage", "triage-2", "triage-3"]
        with expect("task_slug_taken", 409):
            service.create_task(session, owner, name="x", slug="triage")
        other = seeded.project(session, "other").id
        assert service.create_task(session, other, name="Triage").slug == "triage"


def test_a_task_adopts_the_earlier_calls_of_its_shape_and_nobody_elses() -> None:
    with session_scope() as session:
        owner, other = seeded.project(session), seeded.project(session, "other")
        teacher, first = seeded.upstream(session, owner), seeded.task(session, owner, "first")
        shape = b"s" * 32
        loose = seeded.call(session, first, teacher, "a", "b", task_id=None, fingerprint=shape)
        owned = seeded.call(session, first, teacher, "c", "d", fingerprint=shape)
        foreign = seeded.call(session, seeded.task(session, other), None, "e", "f", task_id=None, fingerprint=shape)
        task = service.create_task(session, owner.id, name="Second", fingerprint=shape)
        with expect("task_fingerprint_taken", 409):
            service.create_task(session, owner.id, name="Third", fingerprint=shape)
    with session_scope() as session:
        assert session.get_one(Call, loose.id).task_id == task.id
        assert session.get_one(Call, owned.id).task_id == first.id
        assert session.get_one(Call, foreign.id).task_id is None


def test_a_task_is_renamed_and_switched_within_its_project_only() -> None:
    with session_scope() as session:
        owner, other = seeded.project(session), seeded.project(session, "other")
        task = seeded.task(session, owner)
        service.update_task(session, owner.id, task.id, name="New", state="ignored")
        assert (task.name, task.state) == ("New", "ignored")
        with expect("task_state", 422):
            service.update_task(session, owner.id, task.id, state="asleep")
        with expect("task_not_found", 404):
            service.update_task(session, other.id, task.id, name="Stolen")
        with expect("task_not_found", 404):
            service.get_task(session, owner.id, new_id())
