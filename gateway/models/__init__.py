"""Every SQLAlchemy table. Must hold no rules and no queries."""

from gateway.models.access import ApiKey, Project
from gateway.models.base import Base
from gateway.models.calls import Blob, BlobDictionary, Call, SpoolCursor
from gateway.models.datasets import Dataset, DatasetRow, DatasetVersion
from gateway.models.evaluations import Evaluation, EvaluationOutput
from gateway.models.money import LedgerEntry, Price
from gateway.models.routing import Deployment, Route, RouteFallback, RouteRevision, Student, Upstream
from gateway.models.runs import Checkpoint, Rollout, Run, RunEvent, RunStep, TrainedSequence
from gateway.models.tasks import Rubric, Task

__all__ = [
    "ApiKey",
    "Base",
    "Blob",
    "BlobDictionary",
    "Call",
    "Checkpoint",
    "Dataset",
    "DatasetRow",
    "DatasetVersion",
    "Deployment",
    "Evaluation",
    "EvaluationOutput",
    "LedgerEntry",
    "Price",
    "Project",
    "Rollout",
    "Route",
    "RouteFallback",
    "RouteRevision",
    "Rubric",
    "Run",
    "RunEvent",
    "RunStep",
    "SpoolCursor",
    "Student",
    "Task",
    "TrainedSequence",
    "Upstream",
]
