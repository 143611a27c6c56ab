"""Freezing: deterministic, no input on two sides, only what may be learned, immutable, test behind one door."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from sqlalchemy import select

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.datasets import repository, service
from gateway.datasets.schemas import DatasetRules, Minimums
from gateway.datasets.splits import split_of
from gateway.models import DatasetRow, DatasetVersion, Project, Task, Upstream
from tests import seeded

pytestmark = pytest.mark.usefixtures("database")
RULES = DatasetRules(train=0.55, validation=0.10, test=0.35)
FEW = Minimums(1, 1, 1)


def scene(calls: int = 120, **permission: str) -> tuple[Project, Upstream, Task]:
    with session_scope() as session:
        owner = seeded.project(session)
        teacher = seeded.upstream(session, owner, **permission)
        task = seeded.task(session, owner)
        for n in range(calls):
            seeded.call(session, task, teacher, f"ticket {n}", f'{{"n": {n}}}')
    return owner, teacher, task


def freeze(task: Task, rules: DatasetRules = RULES, minimums: Minimums = FEW) -> DatasetVersion:
    with session_scope() as session:
        return service.freeze(session, task, rules, minimums)


def rows(version: DatasetVersion) -> list[DatasetRow]:
    with session_scope() as session:
        query = select(DatasetRow).where(DatasetRow.version_id == version.id).order_by(DatasetRow.position)
        return list(session.scalars(query))


def test_rows_carry_messages_target_and_provenance() -> None:
    _, teacher, task = scene()
    version = freeze(task)
    frozen = rows(version)
    assert [row.position for row in frozen] == list(range(120))
    row = frozen[7]
    assert row.messages[-1] == {"role": "user", "content": "ticket 7"}
    assert row.target == {"role": "assistant", "content": '{"n": 7}'}
    assert row.upstream_id == teacher.id
    counts = Counter(row.split for row in frozen)
    assert {split: version.counts[split] for split in counts} == counts
    assert 0.25 < counts["test"] / 120 < 0.45


def test_freezing_again_without_news_gives_the_same_version_and_more_calls_keep_every_side() -> None:
    _, teacher, task = scene()
    first = freeze(task)
    assert freeze(task).id == first.id
    with session_scope() as session:
        seeded.call(session, task, teacher, "a new one", "{}")
    second = freeze(task)
    assert second.version == 2
    assert second.content_hash != first.content_hash
    before = {row.input_hash: row.split for row in rows(first)}
    after = {row.input_hash: row.split for row in rows(second)}
    assert len(after) == len(before) + 1
    assert all(after[key] == split for key, split in before.items())


def test_shares_are_fixed_by_the_first_freeze() -> None:
    _, teacher, task = scene()
    freeze(task)
    with session_scope() as session:
        seeded.call(session, task, teacher, "a new one", "{}")
    second = freeze(task, DatasetRules(train=0.1, validation=0.1, test=0.8))
    assert second.rules["test"] == 0.35


def test_a_repeated_input_is_one_example_with_its_first_answer() -> None:
    _, teacher, task = scene(60)
    with session_scope() as session:
        for answer in ("later", "latest"):
            seeded.call(session, task, teacher, "ticket 3", answer)
    version = freeze(task)
    assert version.counts["duplicates"] == 2
    same = [row for row in rows(version) if row.messages[-1]["content"] == "ticket 3"]
    assert [row.target["content"] for row in same] == ['{"n": 3}']


def test_what_must_not_be_learned_is_left_out_and_counted() -> None:
    owner, teacher, task = scene(60)
    with session_scope() as session:
        strict = seeded.upstream(session, owner, "strict", train_on_output="forbidden")
        silent = seeded.upstream(session, owner, "silent", train_on_output="unknown")
        for n in range(3):
            seeded.call(session, task, strict, f"strict {n}", "{}")
            seeded.call(session, task, silent, f"silent {n}", "{}")
        seeded.call(session, task, teacher, "cut", "{", trainable=False, complete=False)
        seeded.call(session, task, teacher, "own", "{}", served_by="student")
        seeded.call(session, task, teacher, "bodiless", "{}", request=None, response=None)
        image = {"type": "image_url", "image_url": {"url": "data:,"}}
        seeded.call(session, task, teacher, "x", "{}", request={"messages": [{"role": "user", "content": [image]}]})
    version = freeze(task)
    told = {key: version.counts[key] for key in ("forbidden", "untrainable", "student", "calls")}
    assert told == {"forbidden": 6, "untrainable": 3, "student": 1, "calls": 70}
    texts = {row.messages[-1]["content"] for row in rows(version) if row.split != "practice"}
    assert texts == {f"ticket {n}" for n in range(60)}


def test_prompts_without_an_answer_to_learn_from_are_kept_to_practise_on() -> None:
    """Without the answer, and only on the side of training: validation and test stay unseen."""
    owner, teacher, task = scene(40)
    with session_scope() as session:
        strict = seeded.upstream(session, owner, "strict", train_on_output="forbidden")
        for n in range(40, 100):
            seeded.call(session, task, strict, f"ticket {n}", "secret")
            seeded.call(session, task, teacher, f"ticket {n}", "{", trainable=False, complete=False)
        seeded.call(session, task, teacher, "ticket 3", "mine", served_by="student")
    version = freeze(task)
    practice = [row for row in rows(version) if row.split == "practice"]
    texts = {row.messages[-1]["content"] for row in practice}
    assert len(texts) == len(practice) == version.counts["practice"]
    assert 20 < len(practice) < 45
    assert texts < {f"ticket {n}" for n in range(40, 100)}, "what has an answer is an example"
    assert {split_of(row.input_hash, RULES) for row in practice} == {"train"}
    assert all(row.target == {} for row in practice)
    with session_scope() as session:
        found = service.practice_rows(session, owner.id, version.id)
        assert [row.id for row in found] == [row.id for row in practice]
        assert not {row.id for row in practice} & {row.id for row in service.train_rows(session, owner.id, version.id)}


def test_too_little_is_refused_with_what_is_missing() -> None:
    _, _, task = scene(20)
    with pytest.raises(StepdownError) as refusal:
        freeze(task, minimums=Minimums())
    assert refusal.value.code == "dataset_too_small"
    assert "(at least 60)" in str(refusal.value)
    assert "Of 20 calls" in str(refusal.value)


@pytest.mark.parametrize("permission", ["unknown", "forbidden"])
def test_without_permission_nothing_is_learned_and_the_way_is_shown(permission: str) -> None:
    _, _, task = scene(200, train_on_output=permission)
    with pytest.raises(StepdownError) as refusal:
        freeze(task, minimums=Minimums())
    assert refusal.value.code == "training_not_permitted"
    assert f"frontier (train_on_output: {permission})" in str(refusal.value)
    with session_scope() as session:
        assert session.scalars(select(DatasetRow)).first() is None


def test_the_test_split_has_one_door_and_it_counts() -> None:
    owner, _, task = scene()
    version = freeze(task)
    with session_scope() as session:
        with pytest.raises(ValueError, match="open_test alone"):
            repository.rows(session, version.id, "test")  # type: ignore[arg-type]
        readable = [
            *service.train_rows(session, owner.id, version.id),
            *service.validation_rows(session, owner.id, version.id),
        ]
        assert {row.split for row in readable} == {"train", "validation"}
    for opening in (1, 2):
        with session_scope() as session:
            assert {row.split for row in service.open_test(session, owner.id, version.id)} == {"test"}
        with session_scope() as session:
            assert session.get_one(DatasetVersion, version.id).test_openings == opening


def test_another_project_sees_nothing_of_it() -> None:
    _, _, task = scene()
    version = freeze(task)
    with session_scope() as session:
        stranger: UUID = seeded.project(session, "other").id
        with pytest.raises(StepdownError, match="no dataset_version"):
            service.open_test(session, stranger, version.id)
    with session_scope() as session:
        assert session.get_one(DatasetVersion, version.id).test_openings == 0


def test_sides_follow_the_hash_alone_in_the_stated_shares() -> None:
    import hashlib

    sides = Counter(split_of(hashlib.sha256(str(n).encode()).digest(), RULES) for n in range(20_000))
    assert abs(sides["train"] / 20_000 - 0.55) < 0.015
    assert abs(sides["validation"] / 20_000 - 0.10) < 0.01
    assert abs(sides["test"] / 20_000 - 0.35) < 0.015
