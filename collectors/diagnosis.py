"""Asking again, untimed, after a probe was lost: is the answer stored, and where was it dropped?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from collectors.backend import Backend, BackendError, BackendGone, Hit, Recall, Usage
from collectors.backends.base import described
from collectors.calls import Attempted, Line, attempt, describe
from collectors.failures import Diagnosis, answers
from collectors.history import History
from collectors.matching import MatchTimeout, any_matches
from collectors.scorers import Want, is_same
from collectors.suite import Memory, Probe, Scope

DEEP = 100
"""Hits asked for in a deep recall."""


class _Unanswered(Exception):
    """A call of the diagnosis failed; the message says how."""


OWN = 3
"""Memories with whose own text each leg is asked."""

Wanted = dict[Want, list[Memory]]


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
        except (_Unanswered, BackendGone, MatchTimeout) as failed:
            self.hung = isinstance(failed, BackendGone)
            found = Diagnosis(planted=len(history.held), error=str(failed))
        ms = (time.perf_counter() - started) * 1000
        return found._replace(calls=self.calls, ms=ms, usage=self.usage)

    def _findings(self, probe: Probe, scope: Scope, history: History) -> Diagnosis:
        wanted = answers(probe, history)
        legs = self.backend.legs if "legs" in self.backend.capabilities else ()
        memories = {memory.id: memory for found in wanted.values() for memory in found}
        others = history.held.keys()
        found = {id: self._by_own_text(memory, scope, wanted, others) for id, memory in memories.items()}
        stored = [memories[id] for id, hit in found.items() if hit]
        changed = ((id, self._changes(memories[id], hit, wanted)) for id, hit in found.items() if hit)
        return Diagnosis(
            legs={
                leg: self._best_rank(probe, scope, wanted, leg) for leg in legs if wanted and not probe.leg
            },
            counts=self._counts(scope),
            planted=len(history.held),
            deep_rank=self._best_rank(probe, scope, wanted, probe.leg) if wanted else None,
            stored={id: hit is not None for id, hit in found.items()},
            changed={id: changes for id, changes in changed if changes},
            own={leg: self._by_leg(stored[:OWN], scope, leg) for leg in legs if stored},
        )

    def _best_rank(self, probe: Probe, scope: Scope, wanted: Wanted, leg: str | None) -> int | None:
        hits = self._recall(scope, probe.query, leg)
        ranks = (n for n, hit in enumerate(hits, 1) if any(want.met_by(hit.id, hit.text) for want in wanted))
        return next(ranks, None)

    def _by_own_text(
        self, memory: Memory, scope: Scope, wanted: Wanted, known: Collection[str]
    ) -> Hit | None:
        """What comes back for the memory's own text and is that memory. An extractor may have given it other
        words, so whatever meets its want counts too, unless it is `known` as another memory."""
        mine = [want for want, found in wanted.items() if memory in found]
        asked = self._recall(_home(memory, scope), memory.text, None)
        hits = [hit for hit in asked if hit.id == memory.id or hit.id not in known]
        return (
            next((hit for hit in hits if hit.id == memory.id), None)
            or next((hit for hit in hits if hit.text == memory.text), None)
            or next((hit for hit in hits if any(want.met_by(hit.id, hit.text) for want in mine)), None)
        )

    def _by_leg(self, memories: Sequence[Memory], scope: Scope, leg: str) -> str:
        """The worst of what became of each memory when the leg was asked with its text."""
        fates = set()
        for memory in memories:
            hits = self._recall(_home(memory, scope), memory.text, leg)
            found = any(hit.id == memory.id or hit.text == memory.text for hit in hits)
            fates.add("found" if found else "missed" if hits else "empty")
        return next(fate for fate in ("empty", "missed", "found") if fate in fates)

    def _changes(self, memory: Memory, hit: Hit, wanted: Wanted) -> dict[str, str]:
        """What of a memory is not as it was planted. Other words that still hold the answer are no change."""
        texts = [want.patterns for want, found in wanted.items() if memory in found and want.patterns]
        holds = hit.text == memory.text or all(any_matches(patterns, hit.text) for patterns in texts)
        changes = {} if holds else {"text": "other"}
        if "metadata" not in self.backend.capabilities:
            return changes
        planted = described(_home(memory, Scope("")), memory)
        wrong = {name for name, value in planted.items() if not is_same(value, hit.metadata.get(name))}
        return changes | {name: "other" if name in hit.metadata else "missing" for name in wrong}

    def plant_alone(self, memory: Memory, box: Scope, reopen: Callable[[], Backend] | None) -> Diagnosis:
        """What becomes of a memory that is all there is in the namespace, which is emptied first; with
        `reopen` also when the backend is closed and opened again. What is kept alone and was gone among
        others was taken away, by one of these. Empty where a call fails."""
        started = time.perf_counter()
        try:
            alone = {memory.id: self._fate(memory, box, reopen)}
        except (_Unanswered, BackendGone) as failed:
            self.hung = isinstance(failed, BackendGone)
            alone = {}
        ms = (time.perf_counter() - started) * 1000
        return Diagnosis(alone=alone, calls=self.calls, ms=ms, usage=self.usage)

    def _fate(self, memory: Memory, box: Scope, reopen: Callable[[], Backend] | None) -> str:
        home = _home(memory, box)
        self._call(lambda: self.backend.reset(box))
        self._call(lambda: self.backend.remember(replace(home, session=memory.session), [memory]))
        self._call(lambda: self.backend.settle(box))
        if not self._is_kept(memory, home):
            return "lost"
        if reopen:
            self.backend = reopen()
        return "kept" if not reopen or self._is_kept(memory, home) else "reopened"

    def _is_kept(self, memory: Memory, home: Scope) -> bool:
        hits = self._recall(home, memory.text, None)
        return any(hit.id == memory.id or hit.text == memory.text for hit in hits)

    def _call(self, call: Callable[[], Any]) -> None:
        self.calls += 1
        made = attempt(self.line, call, 1)
        if made.error:
            raise _Unanswered(describe(made.error))
        self.usage += made.value if isinstance(made.value, Usage) else Usage()

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


def _home(memory: Memory, scope: Scope) -> Scope:
    """All that the memory's user has in the namespace."""
    return Scope(scope.namespace, memory.user)


def recall(
    line: Line, backend: Backend, scope: Scope, query: str, k: int, leg: str | None, attempts: int
) -> Attempted:
    """Ask, with retries; the value is a `Recall` of the right types. Raises `BackendGone`, `Stopped`."""
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
