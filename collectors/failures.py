"""Why a case was lost, from what came back and what the diagnosis found. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from collectors.backend import Hit
from collectors.history import History
from collectors.scorers import Evidence, Want, holds, wants
from collectors.suite import Memory, Probe


class Diagnosis(NamedTuple):
    """What was learned by asking again, untimed, after a probe was lost. Ranks count from 1, None is "not
    found". `legs`: best wanted rank of each index asked alone; `counts`: memories by index, as the backend
    says; `planted`: as planted; `deep_rank`: best wanted rank among 100; `stored`: for each memory that
    holds the answer, whether asking with its own text returns it; `error`: why the diagnosis stopped."""

    legs: dict[str, int | None] = {}  # noqa: RUF012
    counts: dict[str, int] | None = None
    planted: int = 0
    deep_rank: int | None = None
    stored: dict[str, bool] = {}  # noqa: RUF012
    calls: int = 0
    ms: float = 0.0
    error: str | None = None


def answers(probe: Probe, history: History) -> dict[Want, list[Memory]]:
    """For each want, the memories held that meet it."""
    return {
        want: [memory for memory in history.held.values() if want.met_by(memory.id, memory.text)]
        for want in wants(probe)
    }


def failure_kind(
    probe: Probe, evidence: Evidence, history: History, diagnosis: Diagnosis | None = None
) -> str | None:
    """The kind of a lost case; None for one that passed. What came back and should not have outranks what
    is missing: a leak or a stale fact usually is also the reason why the answer is not there."""
    if all(holds(probe, evidence, expectation) for expectation in probe.expectations):
        return None
    return (
        _came_back(probe, evidence, history)
        or _missing(probe, evidence, diagnosis)
        or _too_much(probe, evidence)
    )


def _came_back(probe: Probe, evidence: Evidence, history: History) -> str | None:
    suspects = [evidence.hits[rank] for rank in sorted(evidence.unwanted) if rank < probe.k]
    for hit in suspects:
        if _is_one_of(hit, history.forgotten.values()):
            return "forgotten yet returned"
        if _is_foreign(probe, hit, history):
            return "leaked from another scope or user"
    if evidence.unwanted_first:
        first = evidence.hits[0]
        return (
            "leaked from another scope or user" if _is_foreign(probe, first, history) else "stale fact first"
        )
    return "unwanted returned" if suspects else None


def _missing(probe: Probe, evidence: Evidence, diagnosis: Diagnosis | None) -> str | None:
    if all(any(rank < probe.k for rank in ranks) for ranks in evidence.found):
        return None
    if any(ranks for ranks in evidence.found) and not any(
        r < probe.k for ranks in evidence.found for r in ranks
    ):
        return "returned but too low"
    if diagnosis is None or diagnosis.error:
        return "not returned"
    if diagnosis.stored and not any(diagnosis.stored.values()) and diagnosis.deep_rank is None:
        return "not stored"
    return "returned but too low" if diagnosis.deep_rank is not None else "stored but not returned"


def _too_much(probe: Probe, evidence: Evidence) -> str:
    limited = any(
        e.kind in ("at_most", "exactly") and not holds(probe, evidence, e) for e in probe.expectations
    )
    return "limit not honoured" if limited and len(evidence.hits) > probe.k else "unwanted returned"


def _is_one_of(hit: Hit, memories: Iterable[Memory]) -> bool:
    return any(hit.id == memory.id or hit.text == memory.text for memory in memories)


def _is_foreign(probe: Probe, hit: Hit, history: History) -> bool:
    """Whether the hit is a memory that the question's scope does not cover."""
    mine = [memory for memory in history.held.values() if _is_one_of(hit, [memory])]
    return bool(mine) and not any(_covers(probe, memory) for memory in mine)


def _covers(probe: Probe, memory: Memory) -> bool:
    return (
        memory.user == probe.user
        and (not probe.domains or memory.domain in probe.domains)
        and (probe.session is None or memory.session == probe.session)
    )
