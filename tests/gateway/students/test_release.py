"""From evidence to a student and its route: what is refused, what is made, and the way back."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ids import new_id
from gateway.evaluations import service as evaluations
from gateway.evaluations.service import OutputRecord
from gateway.models import (
    Checkpoint,
    Dataset,
    DatasetRow,
    DatasetVersion,
    Deployment,
    Evaluation,
    Price,
    Route,
    RouteRevision,
    Run,
    Student,
)
from gateway.routing import service as routing
from gateway.students import service as students
from tests import seeded

pytestmark = pytest.mark.usefixtures("database")
N = 200
BARS = [{"kind": "judged", "name": "judged", "delta": 0.05}, {"kind": "external", "name": "truth", "bar": 0.8}]


class Scene:
    """A finished run whose GRPO candidate ties with its teacher, waiting for the user's own scores."""

    def __init__(self, session: Session, home: Path) -> None:
        owner = seeded.project(session)
        self.project = owner.id
        self.upstream = seeded.upstream(session, owner)
        self.task = seeded.task(session, owner)
        run = seeded.run(session, self.task, bars=BARS)
        version = _version(session, run)
        run.dataset_version_id = version.id
        self.rows = [row.id for row in session.query(DatasetRow).filter_by(version_id=version.id, split="test")]
        checkpoint = Checkpoint(
            project_id=owner.id, run_id=run.id, phase="grpo", step=8, path="x", validation={"judged": 0.5}
        )
        session.add(checkpoint)
        session.flush()
        self.weights = f"students/{run.id}-grpo"
        folder = home / "models" / self.weights
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 8192}))
        evaluation = evaluations.begin(session, run)
        outputs = [OutputRecord(row, "{}", True, 0.5) for row in self.rows]
        details = {"checkpoint_id": str(checkpoint.id), "engine": engine()}
        evaluations.record_candidate(session, evaluation, "grpo", outputs, details)
        evaluations.record_candidate(session, evaluation, "sft", outputs, details)
        evaluations.finish(session, evaluation, "grpo", {"weights": self.weights})
        self.evaluation = evaluation.id
        route, _ = routing.create_route(
            session, owner.id, alias="frontier-1", upstream_id=self.upstream.id, task_id=self.task.id
        )
        self.route = route.id

    def post(self, right: int, candidate: str = "grpo", name: str = "truth") -> Evaluation:
        results = {row: place < right for place, row in enumerate(self.rows)}
        with session_scope() as session:
            return evaluations.post_external(
                session, self.project, self.evaluation, name=name, candidate=candidate, results=results
            )

    def release(self, candidate: str | None = None) -> tuple[Student, Deployment]:
        with session_scope() as session:
            return students.release(session, self.project, self.evaluation, candidate)

    def revise(self, **how: Any) -> RouteRevision:
        with session_scope() as session:
            return routing.add_revision(session, self.project, self.route, **({"reason": "test"} | how))

    def rollback(self) -> RouteRevision:
        with session_scope() as session:
            return routing.rollback(session, self.project, self.route)


def engine() -> dict[str, Any]:
    return {"seconds": 20.0, "tokens": 4000, "prompts": N, "max_new_tokens": 48}


def _version(session: Session, run: Run) -> DatasetVersion:
    dataset = Dataset(project_id=run.project_id, task_id=run.task_id, name="triage", rules={})
    session.add(dataset)
    session.flush()
    version = DatasetVersion(
        project_id=run.project_id,
        dataset_id=dataset.id,
        version=1,
        content_hash=b"h" * 32,
        counts={},
        rules={"shape": {"response_format": None, "tools": None, "fingerprint": "ab" * 32, "mixed": False}},
    )
    session.add(version)
    session.flush()
    session.add_all(
        DatasetRow(
            project_id=run.project_id,
            version_id=version.id,
            position=place,
            split="test" if place < N else "train",
            input_hash=place.to_bytes(32),
            call_id=new_id(),
            messages=[],
            target={},
        )
        for place in range(N + 5)
    )
    session.flush()
    return version


@pytest.fixture
def scene(home: Path) -> Scene:
    with session_scope() as session:
        return Scene(session, home)


def expect(code: str, status: int = 409) -> Any:
    """Expects a StepdownError with this code and HTTP status."""
    return pytest.raises(StepdownError, check=lambda error: (error.code, error.status) == (code, status))


def test_nothing_is_released_while_a_bar_is_pending_or_missed(scene: Scene) -> None:
    with expect("gate_not_passed") as refusal:
        scene.release()
    assert "pending" in str(refusal.value)
    scene.post(right=150)  # 75 %: its interval still holds 0.80
    with expect("gate_not_passed"):
        scene.release()
    with session_scope() as session:
        assert session.query(Student).count() == 0
        assert session.query(Deployment).count() == 0


def test_a_passed_gate_makes_student_price_and_deployment_once(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    again, same = scene.release()
    assert (again.id, same.id) == (student.id, deployment.id)
    assert student.name == "triage-v1"
    assert (deployment.state, deployment.wanted) == ("requested", True)
    manifest = student.manifest
    assert manifest["context_length"] == 8192
    assert manifest["max_new_tokens"] == 48
    assert manifest["fingerprint"] == "ab" * 32
    assert manifest["metrics"]["judged"]["win_rate"] == 0.5
    with session_scope() as session:
        price = session.query(Price).filter_by(student_id=student.id).one()
    # 0.10 USD an hour, 20 s for 4,000 tokens: 0.1 / 3600 × 20 / 4000 × 10^6
    assert price.output_per_mtok == pytest.approx(Decimal("0.1388888889"), abs=Decimal("1e-9"))
    assert price.input_per_mtok == 0
    assert "assumption" in price.source


def test_only_exported_weights_of_the_right_project_are_released(scene: Scene) -> None:
    scene.post(right=185)
    scene.post(right=185, candidate="sft")
    with expect("weights_not_exported"):
        scene.release("sft")
    with session_scope() as session:
        stranger = seeded.project(session, "other").id
    with expect("evaluation_not_found", 404), session_scope() as session:
        students.release(session, stranger, scene.evaluation)


def test_external_scores_must_be_whole_and_stay_as_posted(scene: Scene) -> None:
    assert scene.post(right=150, candidate="teacher").external["truth"]["teacher"]["value"] == 0.75
    scene.post(right=185)
    assert scene.post(right=185).external["truth"]["grpo"]["n"] == N
    with expect("external_posted"):
        scene.post(right=200)
    with expect("candidate_unknown", 422):
        scene.post(right=185, candidate="nobody")
    rows, scene.rows = scene.rows, scene.rows[:-1]
    with expect("external_rows", 422):
        scene.post(right=150, name="other")
    scene.rows = [*rows, new_id()]
    with expect("external_rows", 422):
        scene.post(right=150, name="other")


def test_no_student_serves_without_evidence_and_a_ready_engine(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    with expect("evidence_missing"):
        scene.revise(stage="live", share=1.0, student_id=student.id)
    with expect("evidence_missing"):
        scene.revise(stage="live", share=1.0, student_id=student.id, evaluation_id=new_id())
    with expect("deployment_not_ready"):
        scene.revise(stage="live", share=1.0, student_id=student.id, evaluation_id=scene.evaluation)
    with session_scope() as session:
        students.mark_ready(session, deployment.id, "http://127.0.0.1:9/v1")
    revision = scene.revise(stage="live", share=1.0, student_id=student.id, evaluation_id=scene.evaluation)
    assert (revision.number, revision.deployment_id, revision.evaluation_id) == (2, deployment.id, scene.evaluation)
    with session_scope() as session:
        assert session.get_one(Route, scene.route).revision_id == revision.id


def test_a_route_of_another_task_takes_no_student(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    with session_scope() as session:
        students.mark_ready(session, deployment.id, "http://127.0.0.1:9/v1")
        route, _ = routing.create_route(session, scene.project, alias="frontier-1", upstream_id=scene.upstream.id)
    scene.route = route.id
    with expect("task_mismatch"):
        scene.revise(stage="live", share=1.0, student_id=student.id, evaluation_id=scene.evaluation)


@pytest.mark.parametrize(
    ("stage", "share"),
    [("live", 1.0), ("canary", 0.1), ("shadow", 0.1), ("observe", 0.5), ("party", 0.0), ("live", 2.0)],
)
def test_impossible_revisions_are_refused(scene: Scene, stage: str, share: float) -> None:
    with expect("revision_invalid", 422):
        scene.revise(stage=stage, share=share)


def test_rolling_back_goes_down_the_stack_and_asks_for_nothing(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    with session_scope() as session:
        students.mark_ready(session, deployment.id, "http://127.0.0.1:9/v1")
    evidence = {"student_id": student.id, "evaluation_id": scene.evaluation}
    scene.revise(stage="canary", share=0.1, **evidence)
    scene.revise(stage="live", share=1.0, **evidence)
    with session_scope() as session:
        session.get_one(Deployment, deployment.id).state = "failed"
    back = scene.rollback()
    assert (back.number, back.stage, back.share, back.student_id) == (4, "canary", 0.1, student.id)
    back = scene.rollback()
    assert (back.number, back.stage, back.student_id) == (5, "observe", None)
    with expect("no_earlier_revision"):
        scene.rollback()


def test_an_engine_is_unloaded_only_when_no_route_names_its_student(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    with session_scope() as session:
        students.mark_ready(session, deployment.id, "http://127.0.0.1:9/v1")
    scene.revise(stage="live", share=1.0, student_id=student.id, evaluation_id=scene.evaluation)
    with expect("student_in_use") as refusal, session_scope() as session:
        students.unload(session, scene.project, student.id)
    assert "frontier-1" in str(refusal.value)
    scene.revise(stage="observe", share=0.0)
    with session_scope() as session:
        stranger = seeded.project(session, "other").id
        assert students.unload(session, scene.project, student.id).wanted is False
    for change in (students.load, students.unload):
        with expect("student_not_found", 404), session_scope() as session:
            change(session, stranger, student.id)
    with expect("deployment_not_ready"):
        scene.revise(stage="live", share=1.0, student_id=student.id, evaluation_id=scene.evaluation)


@pytest.mark.parametrize(("wanted", "state"), [(False, "ready"), (False, "stopped"), (True, "failed")])
def test_what_was_unloaded_or_failed_is_loaded_again(scene: Scene, wanted: bool, state: str) -> None:
    scene.post(right=185)
    student, deployment = scene.release()

    def ended() -> None:
        with session_scope() as session:
            row = session.get_one(Deployment, deployment.id)
            row.wanted, row.state, row.base_url, row.error = wanted, state, "http://127.0.0.1:9/v1", "no memory"

    def load() -> None:
        with session_scope() as session:
            students.load(session, scene.project, student.id)

    for again in (load, scene.release):
        ended()
        again()
        with session_scope() as session:
            row = session.get_one(Deployment, deployment.id)
            assert (row.wanted, row.state, row.base_url, row.error) == (True, "requested", None, None)


def test_loading_what_is_ready_changes_nothing(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    with session_scope() as session:
        students.mark_ready(session, deployment.id, "http://127.0.0.1:9/v1")
    with session_scope() as session:
        row = students.load(session, scene.project, student.id)
        assert (row.id, row.state, row.base_url) == (deployment.id, "ready", "http://127.0.0.1:9/v1")


def test_rolling_back_loads_the_student_that_was_unloaded(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    with session_scope() as session:
        students.mark_ready(session, deployment.id, "http://127.0.0.1:9/v1")
    scene.revise(stage="live", share=1.0, student_id=student.id, evaluation_id=scene.evaluation)
    scene.revise(stage="observe", share=0.0)
    with session_scope() as session:
        students.unload(session, scene.project, student.id)
    assert scene.rollback().student_id == student.id
    with session_scope() as session:
        row = session.get_one(Deployment, deployment.id)
        assert (row.wanted, row.state) == (True, "requested")


def test_a_revision_after_a_rollback_is_undone_to_what_the_rollback_restored(scene: Scene) -> None:
    scene.post(right=185)
    student, deployment = scene.release()
    with session_scope() as session:
        students.mark_ready(session, deployment.id, "http://127.0.0.1:9/v1")
    evidence = {"student_id": student.id, "evaluation_id": scene.evaluation}
    scene.revise(stage="live", share=1.0, **evidence)
    scene.rollback()
    scene.revise(stage="canary", share=0.5, **evidence)
    back = scene.rollback()
    assert (back.number, back.stage, back.restores) == (5, "observe", 1)
