"""Owns the seam between the loop and whatever samples completions. Knows no engine."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rl.types import Sample, SamplingParams


class SamplerError(RuntimeError):
    """The sampler cannot answer and could not be brought back; the message says what was tried and where its log is."""


class Sampler(ABC):
    """Draws completions from the policy's current weights.

    `version` numbers the weights it holds, as `push` set it; -1 are those it was started with.
    """

    version: int = -1

    @abstractmethod
    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams) -> list[list[Sample]]:
        """`n` completions for each prompt (token ids), in the order of the prompts. Raises SamplerError."""

    @abstractmethod
    def push(self, weights_dir: Path, version: int) -> None:
        """Take the merged model in `weights_dir` as the weights from now on. Raises SamplerError."""

    @abstractmethod
    def close(self) -> None:
        """Release every process and file. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
