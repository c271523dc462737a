"""What an answer is worth: (probe, evidence) -> float, or None where a metric does not apply. Pure.

`examine` matches an answer against what was wanted and unwanted, once; every metric reads that evidence.
The meaning and unit of each metric stand in `store/metrics.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from collectors.backend import Hit, Observation
from collectors.census import Census
from collectors.matching import any_matches, matches
from collectors.suite import Expectation, Probe

SCORER_VERSION = "1"
"""Raised whenever a metric may come out differently from the same answer."""


class Want(NamedTuple):
    """One thing wanted: found in a hit that matches one of the patterns, or has the id."""

    patterns: tuple[str, ...] = ()
    id: str | None = None

    def met_by(self, id: str, text: str) -> bool:
        return (self.id is not None and id == self.id) or any_matches(self.patterns, text)


class Evidence(NamedTuple):
    """Ranks count from 0. `found`: for each want, the ranks of all hits that match it."""

    hits: tuple[Hit, ...]
    wants: tuple[Want, ...]
    found: tuple[tuple[int, ...], ...]
    unwanted: frozenset[int]
    unwanted_first: bool
    census: Census | None = None
    again: tuple[Hit, ...] | None = None

    @property
    def wanted(self) -> frozenset[int]:
        return frozenset(rank for ranks in self.found for rank in ranks)


def wants(probe: Probe) -> tuple[Want, ...]:
    """Each pattern of an `all`, each id that should come back, and an `any` group as one; what is wanted
    twice counts once."""
    found: list[Want] = []
    for expectation in probe.expectations:
        if expectation.kind == "any":
            found.append(Want(expectation.patterns))
        elif expectation.kind in ("all", "only", "metadata"):
            found += [Want((pattern,)) for pattern in expectation.patterns]
            found += [Want(id=id) for id in expectation.ids]
    return tuple(dict.fromkeys(found))


def examine(probe: Probe, hits: tuple[Hit, ...]) -> Evidence:
    """Raises `MatchTimeout` where a pattern takes too long to tell."""
    wanted = wants(probe)
    found = tuple(
        tuple(rank for rank, hit in enumerate(hits) if want.met_by(hit.id, hit.text)) for want in wanted
    )
    unwanted = [e for e in probe.expectations if e.kind == "unwanted"]
    first = [e for e in probe.expectations if e.kind == "unwanted_first"]
    return Evidence(
        hits,
        wanted,
        found,
        frozenset(rank for rank, hit in enumerate(hits) if any(_forbids(e, hit) for e in unwanted)),
        bool(hits) and any(_forbids(e, hits[0]) for e in first),
    )


def _forbids(expectation: Expectation, hit: Hit) -> bool:
    return hit.id in expectation.ids or any(matches(pattern, hit.text) for pattern in expectation.patterns)


def holds(probe: Probe, evidence: Evidence, expectation: Expectation) -> bool:
    """Whether one expectation is met. Sets and limits are of all that came back, the rest of the first k."""
    hits = evidence.hits
    match expectation.kind:
        case "any" | "all":
            return all(_within(ranks, probe.k) for ranks in _found_of(evidence, expectation))
        case "unwanted":
            return not any(rank < probe.k for rank in evidence.unwanted)
        case "unwanted_first":
            return not evidence.unwanted_first
        case "only":
            return {hit.id for hit in hits} == set(expectation.ids)
        case "at_most":
            return len(hits) <= (expectation.n or 0)
        case "exactly":
            return len(hits) == expectation.n
        case "metadata":
            return not differing(expectation, hits[: probe.k])
        case "stable":
            return evidence.again is None
        case "count":
            share = leg_share(probe, evidence)
            return share is not None and share >= 1 - (expectation.tolerance or 0.0)


def differing(expectation: Expectation, hits: Sequence[Hit]) -> dict[str, Any]:
    """Of a `metadata` expectation, what the hit with its id bears instead, by name; None where it bears
    nothing of that name, or there is no such hit. Empty when it is met."""
    found = next((hit.metadata for hit in hits if hit.id in expectation.ids), {})
    return {
        name: found.get(name) for name, value in expectation.values if not is_same(value, found.get(name))
    }


def is_same(planted: Any, returned: Any) -> bool:
    """Whether a value survived: equal, or the same moment written otherwise."""
    return bool(planted == returned) or None is not moment(planted) == moment(returned)


def moment(value: Any) -> datetime | None:
    """The time that a value tells, in UTC unless it says otherwise; None where it tells none."""
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _found_of(evidence: Evidence, expectation: Expectation) -> list[tuple[int, ...]]:
    mine = {Want(expectation.patterns)} if expectation.kind == "any" else set()
    if expectation.kind == "all":
        mine = {Want((p,)) for p in expectation.patterns} | {Want(id=id) for id in expectation.ids}
    return [ranks for want, ranks in zip(evidence.wants, evidence.found, strict=True) if want in mine]


def _within(ranks: tuple[int, ...], k: int) -> bool:
    return any(rank < k for rank in ranks)


# Metrics


def passed(probe: Probe, evidence: Evidence) -> float:
    return float(all(holds(probe, evidence, expectation) for expectation in probe.expectations))


def recall_at_k(probe: Probe, evidence: Evidence) -> float | None:
    if not evidence.found:
        return None
    return sum(_within(ranks, probe.k) for ranks in evidence.found) / len(evidence.found)


def precision_at_k(probe: Probe, evidence: Evidence) -> float | None:
    returned = min(probe.k, len(evidence.hits))
    if not evidence.found or not returned:
        return None
    return sum(rank < probe.k for rank in evidence.wanted) / returned


def reciprocal_rank(probe: Probe, evidence: Evidence) -> float | None:
    if not evidence.found:
        return None
    best = min(evidence.wanted, default=probe.k)
    return 1 / (best + 1) if best < probe.k else 0.0


def ndcg_at_k(probe: Probe, evidence: Evidence) -> float | None:
    """Järvelin & Kekäläinen 2002 with binary gains. A hit gains when it matches a want that no hit above it
    matched, so that duplicates add nothing; the best order has those hits on top, and one more for each
    want that is missing."""
    if not evidence.found:
        return None
    first = [min((rank for rank in ranks if rank < probe.k), default=None) for ranks in evidence.found]
    gaining = {rank for rank in first if rank is not None}
    best = min(probe.k, len(gaining) + first.count(None))
    return sum(map(_discount, gaining)) / sum(map(_discount, range(best)))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 2)


def unwanted_share(probe: Probe, evidence: Evidence) -> float | None:
    if not any(expectation.kind == "unwanted" for expectation in probe.expectations):
        return None
    returned = min(probe.k, len(evidence.hits))
    return sum(rank < probe.k for rank in evidence.unwanted) / returned if returned else 0.0


def unwanted_came_first(probe: Probe, evidence: Evidence) -> float | None:
    asked = any(expectation.kind == "unwanted_first" for expectation in probe.expectations)
    return float(evidence.unwanted_first) if asked else None


def unstable(probe: Probe, evidence: Evidence) -> float | None:
    asked = any(expectation.kind == "stable" for expectation in probe.expectations)
    return float(evidence.again is not None) if asked else None


def abstained(probe: Probe, evidence: Evidence) -> float | None:
    return float(not evidence.hits) if probe.abstain else None


def leg_count(probe: Probe, evidence: Evidence) -> float | None:
    return float(evidence.census.count(probe.leg)) if evidence.census else None


def leg_share(probe: Probe, evidence: Evidence) -> float | None:
    return evidence.census.share(probe.leg) if evidence.census else None


def returned_tokens(probe: Probe, evidence: Evidence) -> float | None:
    if evidence.census:
        return None
    return float(sum(_tokens(hit.text) for hit in evidence.hits))


@lru_cache(maxsize=1024)
def _tokens(text: str) -> int:
    """Words and marks, counted once for a memory that comes back for many questions."""
    return len(_TOKEN.findall(text))


_TOKEN = re.compile(r"\w+|[^\w\s]")

SCORERS: Mapping[str, Callable[[Probe, Evidence], float | None]] = {
    "pass": passed,
    "recall@k": recall_at_k,
    "precision@k": precision_at_k,
    "mrr": reciprocal_rank,
    "ndcg@k": ndcg_at_k,
    "unwanted": unwanted_share,
    "unwanted_first": unwanted_came_first,
    "abstained": abstained,
    "returned_tokens": returned_tokens,
    "leg_count": leg_count,
    "leg_share": leg_share,
    "unstable": unstable,
}


def score(probe: Probe, evidence: Evidence) -> dict[str, float]:
    """Every metric that applies, by name."""
    values = {name: scorer(probe, evidence) for name, scorer in SCORERS.items()}
    return {name: value for name, value in values.items() if value is not None}


def judge(probe: Probe, observation: Observation) -> tuple[Evidence, dict[str, float]]:
    """Evidence and scores of an answer (of an errored or skipped observation: call neither)."""
    evidence = examine(probe, observation.hits)
    evidence = evidence._replace(census=observation.census, again=observation.again)
    return evidence, score(probe, evidence)
