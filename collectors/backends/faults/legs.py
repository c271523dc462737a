"""One of the indexes fails, and fusion hides it. A backend without legs is left as it is."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from collectors.backend import Recall, Usage
from collectors.backends.faults.wrapper import Wrapper, narrowed
from collectors.backends.hybrid import fused
from collectors.suite import Scope


class LegFault(Wrapper):
    """Asks each leg alone and fuses the answers, so that a subclass can break one of them (`_ask`)."""

    leg = "keyword"
    """The leg that is broken; where there is none of that name, the first stands for keywords and the last
    for vectors."""

    @property
    def broken(self) -> str:
        return self.leg if self.leg in self.legs else self.legs[0 if self.leg == "keyword" else -1]

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        if not self.legs or (leg is not None and leg not in self.legs):
            return self.inner.recall(scope, query, k, leg)
        if leg is not None:
            return self._ask(scope, query, k, leg)
        answers = [self._ask(scope, query, max(50, 4 * k), name) for name in self.legs]
        usage = sum((answer.usage for answer in answers), Usage())
        return Recall(fused([answer.hits for answer in answers])[: max(k, 0)], usage)

    def _ask(self, scope: Scope, query: str, k: int, leg: str) -> Recall:
        if leg == self.broken:
            return self._ask_broken(scope, query, k)
        return self.inner.recall(scope, query, k, leg)

    def _ask_broken(self, scope: Scope, query: str, k: int) -> Recall:
        return Recall(())


class KeywordLegDead(LegFault):
    """Keywords find nothing."""


class VectorLegDead(LegFault):
    """Vectors find nothing."""

    leg = "vector"


class VectorLegDeadForLongQueries(LegFault):
    """As when an embedder refuses long input and the error is swallowed."""

    leg = "vector"
    words = 8

    def _ask_broken(self, scope: Scope, query: str, k: int) -> Recall:
        if len(query.split()) > self.words:
            return Recall(())
        return self.inner.recall(scope, query, k, self.broken)


class HalfMissingFromLeg(LegFault):
    """As after a rebuild of the index that stopped half way."""

    def _ask_broken(self, scope: Scope, query: str, k: int) -> Recall:
        answer = self.inner.recall(scope, query, 2 * k + 100, self.broken)
        return narrowed(answer, [hit for hit in answer.hits if not _is_missing(hit.id)][: max(k, 0)])

    def count(self, scope: Scope) -> Mapping[str, int]:
        counts = dict(self.inner.count(scope))
        if self.legs and self.broken in counts:
            counts[self.broken] -= sum(map(_is_missing, self.held[scope.namespace]))
        return counts


def _is_missing(id: str) -> bool:
    return zlib.crc32(id.encode("utf-8", "surrogatepass")) % 2 == 0
