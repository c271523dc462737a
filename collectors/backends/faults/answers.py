"""The store is sound; what comes back is not, or too late, or not at all."""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from collectors.backend import Backend, BackendError, Hit, Recall, Usage
from collectors.backends.faults.wrapper import WIDE, Wrapper, narrowed
from collectors.suite import Memory, Scope

LONG_AGO = datetime.min.replace(tzinfo=UTC)


class ReturnsEverything(Wrapper):
    """All that is in the scope, in the order of planting."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        answer = self.inner.recall(scope, query, WIDE, leg)
        order = {id: place for place, id in enumerate(self.held[scope.namespace])}
        return narrowed(answer, sorted(answer.hits, key=lambda hit: order.get(hit.id, -1)))


class ReturnsNothing(Wrapper):
    """Never a hit."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return Recall(())


class IgnoresQuery(Wrapper):
    """Every question is taken for the same one: the words of what the user planted last."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        planted = self.theirs(scope)
        return self.inner.recall(scope, planted[-1].text if planted else query, k, leg)


class StaleFirst(Wrapper):
    """Of the best three hits the oldest comes first."""

    among = 3

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        answer = self.inner.recall(scope, query, k, leg)
        best = answer.hits[: self.among]
        oldest = min(best, key=lambda hit: self._age(scope, hit), default=None)
        return narrowed(answer, sorted(answer.hits, key=lambda hit: hit is not oldest))

    def _age(self, scope: Scope, hit: Hit) -> tuple[datetime, int]:
        """By event time, then by planting."""
        held = self.held[scope.namespace]
        if hit.id not in held:
            return datetime.max.replace(tzinfo=UTC), 0
        return held[hit.id].at or LONG_AGO, list(held).index(hit.id)


class LimitIgnored(Wrapper):
    """Every hit there is, whatever the limit."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return self.inner.recall(scope, query, WIDE, leg)


class LimitAlwaysThree(Wrapper):
    """Three hits, whatever the limit."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return self.inner.recall(scope, query, 3, leg)


class ThresholdCutsHalf(Wrapper):
    """The worse half of the hits falls below a threshold."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        answer = self.inner.recall(scope, query, k, leg)
        return narrowed(answer, answer.hits[: (len(answer.hits) + 1) // 2])


class QuestionMarkFindsNothing(Wrapper):
    """As when a query language takes the question mark for its own, and the error is swallowed."""

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        return Recall(()) if "?" in query else self.inner.recall(scope, query, k, leg)


class UnstableTies(Wrapper):
    """Hits that are equally good come in another order each time."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self._dice = random.Random(0)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        answer = self.inner.recall(scope, query, 2 * k, leg)
        ties: list[list[Hit]] = []
        for hit in answer.hits:
            if ties and _are_tied(ties[-1][-1], hit):
                ties[-1].append(hit)
            else:
                ties.append([hit])
        for group in ties:
            self._dice.shuffle(group)
        return narrowed(answer, [hit for group in ties for hit in group][: max(k, 0)])


def _are_tied(one: Hit, other: Hit) -> bool:
    """Of equal score but for the last bits of a sum; or of equal text, which a fusion of ranks may hide."""
    scored = one.score is not None and other.score is not None
    return one.text == other.text or (scored and round(one.score or 0, 9) == round(other.score or 0, 9))


class Slow(Wrapper):
    """Every call takes 20 ms more."""

    pause_s = 0.02

    def remember(self, scope: Scope, memories: Sequence[Memory]) -> Usage:
        time.sleep(self.pause_s)
        return super().remember(scope, memories)

    def settle(self, scope: Scope) -> None:
        time.sleep(self.pause_s)
        super().settle(scope)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        time.sleep(self.pause_s)
        return super().recall(scope, query, k, leg)

    def amend(self, scope: Scope, id: str, text: str) -> None:
        time.sleep(self.pause_s)
        super().amend(scope, id, text)

    def forget(self, scope: Scope, ids: Sequence[str]) -> None:
        time.sleep(self.pause_s)
        super().forget(scope, ids)


class SomeCallsFail(Wrapper):
    """One call in twenty fails, and works when made again. Of the calls that a runner makes again in place:
    a plant that fails would have the whole scenario played again."""

    share = 0.05

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self._dice = random.Random(0)

    def settle(self, scope: Scope) -> None:
        self._throw()
        super().settle(scope)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        self._throw()
        return super().recall(scope, query, k, leg)

    def count(self, scope: Scope) -> Mapping[str, int]:
        self._throw()
        return super().count(scope)

    def _throw(self) -> None:
        if self._dice.random() < self.share:
            raise BackendError("connection reset (a fault put in)")


class Flaky(Wrapper):
    """Noise that belongs to the question: a `share` of all questions is unsure, and each time one of these is
    asked, with probability `flip`, its k best hits stay away and the next best come. Which questions follows
    from `seed` alone, and which times from `seed` and `night`, whatever else is asked in between. `since`, an
    ISO date, has each hour after it be a night of its own, so that none is like the one before."""

    def __init__(
        self,
        inner: Backend,
        share: float = 0.1,
        flip: float = 0.3,
        seed: int = 0,
        night: int = 0,
        since: str = "",
    ) -> None:
        super().__init__(inner)
        self.capabilities -= {"deterministic"}
        self.share, self.flip, self.seed = share, flip, seed
        self.night = _hours_since(since) if since else night
        self._asked: dict[str, int] = {}

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        times = self._asked[query] = self._asked.get(query, 0) + 1
        if not self.flips(query, times):
            return self.inner.recall(scope, query, k, leg)
        answer = self.inner.recall(scope, query, 2 * k, leg)
        return narrowed(answer, answer.hits[k:])

    def flips(self, query: str, times: int) -> bool:
        """Whether the best hits stay away when it is asked for the `times`-th time, the first being 1."""
        return self._draw(query, "") < self.share and self._draw(query, f"{self.night}.{times}") < self.flip

    def _draw(self, query: str, time: str) -> float:
        named = f"{self.seed}:{time}:{query}".encode("utf-8", "surrogatepass")
        return random.Random(zlib.crc32(named)).random()


def _hours_since(day: str) -> int:
    return (datetime.now(UTC) - datetime.fromisoformat(day).replace(tzinfo=UTC)) // timedelta(hours=1)
