"""Asking again, untimed, after a probe was lost: is the answer stored, and where was it dropped?"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from collectors.backend import Backend, BackendError, Hit, Recall, Usage
from collectors.calls import Attempted, CallTimeout, Line, attempt, describe
from collectors.failures import Diagnosis, answers
from collectors.history import History
from collectors.matching import MatchTimeout
from collectors.scorers import Want
from collectors.suite import Memory, Probe, Scope

DEEP = 100
"""Hits asked for in a deep recall."""


class _Unanswered(Exception):
    """A call of the diagnosis failed; the message says how."""


@dataclass(slots=True)
class Inquirer:
    """Asks one backend about a lost probe. A diagnosis that fails says so and changes no result; `hung`:
    a call of it did not come back, so the line and the handle are of no more use."""

    line: Line
    backend: Backend
    attempts: int
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    hung: bool = False

    def diagnose(self, probe: Probe, scope: Scope, history: History) -> Diagnosis:
        started = time.perf_counter()
        try:
            found = self._findings(probe, scope, history)
        except (_Unanswered, CallTimeout, MatchTimeout) as failed:
            self.hung = isinstance(failed, CallTimeout)
            found = Diagnosis(planted=len(history.held), error=str(failed))
        ms = (time.perf_counter() - started) * 1000
        return found._replace(calls=self.calls, ms=ms, usage=self.usage)

    def _findings(self, probe: Probe, scope: Scope, history: History) -> Diagnosis:
        wanted = answers(probe, history)
        legs = self.backend.legs if "legs" in self.backend.capabilities and not probe.leg else ()
        memories = {memory.id: memory for found in wanted.values() for memory in found}
        return Diagnosis(
            legs={leg: self._best_rank(probe, scope, wanted, leg) for leg in legs if wanted},
            counts=self._counts(scope),
            planted=len(history.held),
            deep_rank=self._best_rank(probe, scope, wanted, probe.leg) if wanted else None,
            stored={id: self._is_stored(memory, scope, wanted) for id, memory in memories.items()},
        )

    def _best_rank(
        self, probe: Probe, scope: Scope, wanted: dict[Want, list[Memory]], leg: str | None
    ) -> int | None:
        hits = self._recall(scope, probe.query, leg)
        ranks = (n for n, hit in enumerate(hits, 1) if any(want.met_by(hit.id, hit.text) for want in wanted))
        return next(ranks, None)

    def _is_stored(self, memory: Memory, scope: Scope, wanted: dict[Want, list[Memory]]) -> bool:
        """Whether asking with the memory's own text returns it. An extractor may have given it other words,
        so whatever meets its want counts too."""
        mine = [want for want, found in wanted.items() if memory in found]
        hits = self._recall(Scope(scope.namespace, memory.user), memory.text, None)
        return any(
            hit.id == memory.id or hit.text == memory.text or any(w.met_by(hit.id, hit.text) for w in mine)
            for hit in hits
        )

    def _recall(self, scope: Scope, query: str, leg: str | None) -> tuple[Hit, ...]:
        self.calls += 1
        asked = recall(self.line, self.backend, scope, query, DEEP, leg, self.attempts)
        if asked.error:
            raise _Unanswered(describe(asked.error))
        answer: Recall = asked.value
        self.usage += answer.usage
        return answer.hits

    def _counts(self, scope: Scope) -> dict[str, int] | None:
        if "count" not in self.backend.capabilities:
            return None
        self.calls += 1
        counted = attempt(self.line, lambda: self.backend.count(Scope(scope.namespace)), self.attempts)
        if counted.error:
            raise _Unanswered(describe(counted.error))
        return {str(leg): int(n) for leg, n in counted.value.items()}


def recall(
    line: Line, backend: Backend, scope: Scope, query: str, k: int, leg: str | None, attempts: int
) -> Attempted:
    """Ask, with retries; the value is a `Recall` of the right types. Raises `CallTimeout`, `Stopped`."""
    return attempt(line, lambda: checked(backend.recall(scope, query, k, leg)), attempts)


def checked(answer: object) -> Recall:
    """The answer itself, or a permanent `BackendError` that says which type is wrong: an adapter's bug must
    not become a score."""
    if not isinstance(answer, Recall):
        raise _garbage(f"recall returned {type(answer).__name__}, not Recall")
    for name, wanted in _FIELDS.items():
        if not isinstance(found := getattr(answer, name), wanted):
            raise _garbage(f"{name} of the Recall is {found!r:.80}, of the wrong type")
    for hit in answer.hits:
        _check_hit(hit)
    return answer


_FIELDS: dict[str, Any] = {"hits": (tuple, list), "usage": Usage, "reply": (str, type(None))}


def _check_hit(hit: object) -> None:
    if not (isinstance(hit, Hit) and all(isinstance(part, str) for part in (hit.id, hit.text))):
        raise _garbage(f"recall returned {hit!r:.80}, not Hit(id: str, text: str)")
    if not _is_score(hit.score):
        raise _garbage(f"score of {hit.id!r} is {hit.score!r}, not a finite number or None")
    if not isinstance(hit.metadata, Mapping):
        raise _garbage(f"metadata of {hit.id!r} is {type(hit.metadata).__name__}, not a mapping")


def _is_score(score: object) -> bool:
    return score is None or (isinstance(score, Real) and math.isfinite(score))


def _garbage(fault: str) -> BackendError:
    return BackendError(fault, permanent=True)
