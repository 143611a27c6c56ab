"""Who answers: precedence of routes, tasks, shares."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.core.errors import StepdownError
from gateway.core.ids import new_id
from gateway.providers.spec import UpstreamSpec
from gateway.routing.policy import decide, within_share
from gateway.routing.request import RequestView
from gateway.routing.snapshot import Asked, NamedUpstream, ProjectInForce, RevisionInForce, RouteInForce, StudentInForce
from gateway.tasks.fingerprint import fingerprint

PROJECT, TASK, OTHER = new_id(), new_id(), new_id()
BODY = {"messages": [{"role": "system", "content": "Sort."}, {"role": "user", "content": "hi"}]}
SHAPE = fingerprint(BODY)
MANIFEST = {"fingerprint": SHAPE.hex() if SHAPE else None, "context_length": 100, "max_new_tokens": 10}


def request(slug: str | None = None, **fields: Any) -> RequestView:
    view = RequestView(BODY | fields)
    view.header_task = slug
    return view


def route(alias: str, task_id: UUID | None = None, **revision: Any) -> RouteInForce:
    name = f"{alias}/{'any' if task_id is None else 'task' if task_id == TASK else 'other'}"
    spec = UpstreamSpec(new_id(), PROJECT, "openai", "http://x/v1", "m", "k")
    student = StudentInForce(new_id(), "s", MANIFEST, "http://engine/v1")
    values = {"id": new_id(), "number": 1, "stage": "live", "share": 1.0, "student": student} | revision
    in_force = RevisionInForce(**values) if task_id == TASK else None
    return RouteInForce(new_id(), alias, task_id, (Asked(NamedUpstream(name, spec)),), in_force)


def project(*routes: RouteInForce) -> ProjectInForce:
    assert SHAPE is not None
    return ProjectInForce(
        PROJECT,
        {(r.alias, r.task_id): r for r in routes},
        {r.alias for r in routes if r.task_id},
        {"tickets": TASK, "other": OTHER},
        {SHAPE: TASK},
    )


EVERY = [route("a", TASK), route("a", OTHER), route("a"), route("*")]


@pytest.mark.parametrize(
    ("alias", "slug", "routes", "expected"),
    [
        ("a", None, EVERY, "a/task"),
        ("a", "Tickets", EVERY, "a/task"),
        ("a", "other", EVERY, "a/other"),
        ("a", "unheard-of", EVERY, "a/any"),
        ("b", None, EVERY, "*/any"),
        ("a", None, [route("a"), route("*")], "a/any"),
        ("a", None, [route("b", TASK), route("*")], "*/any"),
    ],
)
def test_the_nearest_route_decides(alias: str, slug: str | None, routes: list[RouteInForce], expected: str) -> None:
    assert decide(project(*routes), alias, request(slug)).route.upstream.name == expected


def test_no_route_names_the_known_aliases() -> None:
    with pytest.raises(StepdownError, match="Known: a, b") as error:
        decide(project(route("b"), route("a", TASK)), "c", request())
    assert error.value.status == 404


def test_the_body_is_not_decoded_where_no_route_needs_it() -> None:
    class Closed(RequestView):
        def _decode(self) -> Any:
            raise AssertionError("the hot path must not open this body")

    assert decide(project(route("a"), route("b", TASK)), "a", Closed()).student is None


@pytest.mark.parametrize(
    ("revision", "student", "reason"),
    [
        ({}, True, None),
        ({"stage": "canary"}, True, None),
        ({"stage": "shadow"}, False, None),
        ({"stage": "observe"}, False, None),
        ({"share": 0.0}, False, None),
        ({"student": None}, False, None),
        ({"student": StudentInForce(new_id(), "s", MANIFEST, None)}, False, "not_deployed"),
        ({"student": StudentInForce(new_id(), "s", MANIFEST | {"fingerprint": None}, "x")}, False, "prompt_changed"),
        ({"student": StudentInForce(new_id(), "s", {}, "x")}, False, "prompt_changed"),
        ({"student": StudentInForce(new_id(), "s", MANIFEST | {"context_length": 20}, "x")}, False, "context_length"),
    ],
)
def test_a_student_answers_only_what_it_may(revision: dict[str, Any], student: bool, reason: str | None) -> None:
    decision = decide(project(route("a", TASK, **revision)), "a", request())
    assert (decision.student is not None, decision.fallback_reason) == (student, reason)


def test_a_share_is_a_share_of_conversations_and_stable() -> None:
    def conversation(i: int, turns: int = 1) -> RequestView:
        messages = [{"role": "user", "content": f"{i}"}]
        return RequestView({"messages": messages + [{"role": "assistant", "content": "x"}] * (turns - 1)})

    chosen = [within_share(0.1, conversation(i)) for i in range(4000)]
    assert 300 < sum(chosen) < 500
    assert chosen == [within_share(0.1, conversation(i, turns=3)) for i in range(4000)]
    more = [within_share(0.5, conversation(i)) for i in range(4000)]
    assert all(later or not earlier for earlier, later in zip(chosen, more, strict=True)), "a larger share keeps them"
