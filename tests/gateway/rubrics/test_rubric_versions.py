"""Rubrics: versions follow each other and never change; what cannot be asked is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.rubrics import service
from tests import seeded

pytestmark = pytest.mark.usefixtures("database")
CONTENT: dict[str, Any] = {
    "criteria": [{"name": "right", "question": "Is it right?", "weight": 2}, {"name": "short", "question": "Short?"}],
    "vetoes": [{"name": "rude", "question": "Is it rude?"}],
    "checks": [{"kind": "json_object"}],
}


def test_versions_follow_each_other_and_the_latest_counts() -> None:
    with session_scope() as session:
        owner = seeded.project(session)
        task, other = seeded.task(session, owner), seeded.task(session, owner, "other")
        assert service.current(session, owner.id, task.id) is None
        first = service.add_version(session, owner.id, task.id, CONTENT)
        second = service.add_version(session, owner.id, task.id, CONTENT | {"vetoes": []})
        service.add_version(session, owner.id, other.id, CONTENT)
        assert (first.version, second.version) == (1, 2)
        assert service.current(session, owner.id, task.id) is second
        assert first.vetoes == CONTENT["vetoes"]
        assert first.criteria[1] == {"name": "short", "question": "Short?", "weight": 1.0}
        stranger = seeded.project(session, "stranger")
        assert service.current(session, stranger.id, task.id) is None
        with pytest.raises(StepdownError, match="no rubric"):
            service.get(session, stranger.id, first.id)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"criteria": []}, "criteria"),
        ({"criteria": [{"name": "x", "question": "y", "weight": -1}]}, "criteria.0.weight"),
        ({"vetoes": [{"name": "right", "question": "again"}]}, "rubric"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_a_rubric_that_cannot_score_is_refused_by_field(change: dict[str, Any], where: str) -> None:
    with session_scope() as session:
        owner = seeded.project(session)
        task = seeded.task(session, owner)
        with pytest.raises(StepdownError) as refusal:
            service.add_version(session, owner.id, task.id, CONTENT | change)
        assert (refusal.value.status, refusal.value.param) == (422, where)
