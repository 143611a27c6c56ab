"""Owns one comparison: outputs in, one verdict each, through one call to the judge and at most one correction.

Checks first (they cost nothing), equal outputs once, cached answers not at all. Knows no groups and no pairs.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, MutableMapping, Sequence

from gateway.core.errors import StepdownError
from gateway.providers.spec import ChatModel, ChatResult
from rl.judge import wire
from rl.judge.base import CandidateVerdict
from rl.judge.rubric import Rubric

log = logging.getLogger(__name__)
Cache = MutableMapping[str, list[wire.Answer]]
Spend = Callable[[ChatResult], None]
_PATIENCE_S = (1.0, 4.0)


class Scorer:
    """Scores outputs of one prompt against each other. `spend` sees every answer paid for, and stops all by raising."""

    def __init__(
        self,
        model: ChatModel,
        rubric: Rubric,
        *,
        judge: str,
        concurrency: int = 8,
        spend: Spend | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.rubric = rubric
        self._model, self._judge, self._spend = model, judge, spend
        self._cache: Cache = {} if cache is None else cache
        self._slots = asyncio.Semaphore(concurrency)
        self.calls = 0
        self.last_error: str | None = None

    async def score(
        self, messages: Sequence[Mapping[str, object]], outputs: Sequence[str]
    ) -> list[CandidateVerdict] | None:
        """One verdict per output, in this order; the judge sees the distinct ones that pass the checks, in the order of
        their first appearance. None where it gave no usable answer."""
        failed = {output: self.rubric.failed_checks(output) for output in outputs}
        asked = [output for output, names in failed.items() if not names]
        answers = await self._answers(messages, asked) if asked else []
        if answers is None:
            return None
        found = dict(zip(asked, answers, strict=True))
        return [
            self._verdict(found[output]) if output in found else CandidateVerdict(0.0, failed_checks=failed[output])
            for output in outputs
        ]

    def _verdict(self, answer: wire.Answer) -> CandidateVerdict:
        reward = self.rubric.reward(answer.criteria, answer.vetoes)
        return CandidateVerdict(reward, answer.criteria, answer.vetoes, reason=answer.reason)

    async def _answers(
        self, messages: Sequence[Mapping[str, object]], outputs: Sequence[str]
    ) -> list[wire.Answer] | None:
        key = self._key(messages, outputs)
        if key in self._cache:
            return self._cache[key]
        body = wire.request(self.rubric, messages, outputs)
        for last in (False, True):
            result = await self._complete(body)
            if result is None:
                return None
            try:
                answers = wire.read(self.rubric, result.content, len(outputs))
            except wire.AnswerError as error:
                self.last_error = str(error)
                log.warning("the judge's answer cannot be used%s: %s", " (dropped)" if last else "", error)
                body = wire.corrected(body, result.content or "", error)
            else:
                self._cache[key] = answers
                return answers
        return None

    async def _complete(self, body: Mapping[str, object]) -> ChatResult | None:
        for pause in (*_PATIENCE_S, None):
            try:
                async with self._slots:
                    result = await self._model.complete(dict(body))
            except StepdownError as error:
                self.last_error = str(error)
                # 4xx but for "too many requests" and "timed out" will be the same next time.
                final = pause is None or (error.status < 500 and error.status not in {408, 409, 429})
                log.warning("the judge did not answer%s: %s", "" if final else ", asking again", error)
                if final:
                    return None
                await asyncio.sleep(pause or 0.0)
                continue
            self.calls += 1
            if self._spend:
                self._spend(result)
            return result
        return None

    def _key(self, messages: Sequence[Mapping[str, object]], outputs: Sequence[str]) -> str:
        parts = [self.rubric.fingerprint(), self._judge, [dict(message) for message in messages], list(outputs)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
