"""Owns the seam between the loop and whatever scores completions. Knows no provider."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JudgeGroup:
    """Completions of one prompt, to be compared with each other and, blind among them, with the anchor."""

    key: str
    messages: Sequence[dict[str, object]]
    candidates: Sequence[str]
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """One candidate's scores: `reward` = Σ weight · criterion in [0, 1], or 0 under a veto or a failed check."""

    reward: float
    criteria: dict[str, float] = field(default_factory=dict)
    vetoes: dict[str, bool] = field(default_factory=dict)
    failed_checks: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """A group's scores, in the candidates' order.

    `agreement` in [0, 1] is the share of candidate pairs that repeated shuffles order alike (1 with one shuffle),
    `noise` the mean absolute difference of a candidate's reward between shuffles.
    """

    candidates: tuple[CandidateVerdict, ...]
    anchor: CandidateVerdict | None = None
    agreement: float = 1.0
    noise: float = 0.0

    @property
    def rewards(self) -> list[float]:
        return [verdict.reward for verdict in self.candidates]


class Judge(ABC):
    """Scores groups. Scores are comparable within a group only."""

    @abstractmethod
    def score(self, groups: Sequence[JudgeGroup]) -> list[GroupVerdict | None]:
        """One verdict per group, in order; None where the judge gave no usable answer (the group is dropped)."""

    def close(self) -> None:
        """Release connections. May be called twice."""
        return
