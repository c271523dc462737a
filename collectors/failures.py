"""Why a case was lost, from what came back and what the diagnosis found. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    if evidence.census:
        return evidence.census.fault(probe.leg)
    return (
        _came_back(probe, evidence, history)
        or _missing(probe, evidence, history, diagnosis)
        or _miscounted(probe, evidence)
    )


def _came_back(probe: Probe, evidence: Evidence, history: History) -> str | None:
    first = {0} if evidence.unwanted_first else set()
    unwanted = first | {rank for rank in evidence.unwanted if rank < probe.k}
    for rank in sorted(unwanted | _strays(probe, evidence)):
        hit = evidence.hits[rank]
        if _is_one_of(hit, history.forgotten.values()):
            return "forgotten yet returned"
        if _is_foreign(probe, hit, history):
            return "leaked from another scope or user"
    if first:
        return "stale fact first"
    return "unwanted returned" if unwanted else None


def _strays(probe: Probe, evidence: Evidence) -> set[int]:
    """Ranks of the hits outside of the only ids that may come back."""
    allowed = [e.ids for e in probe.expectations if e.kind == "only"]
    return {rank for rank, hit in enumerate(evidence.hits) if any(hit.id not in ids for ids in allowed)}


def _missing(probe: Probe, evidence: Evidence, history: History, diagnosis: Diagnosis | None) -> str | None:
    missing = {
        want: ranks
        for want, ranks in zip(evidence.wants, evidence.found, strict=True)
        if not any(rank < probe.k for rank in ranks)
    }
    if not missing:
        return None
    if any(missing.values()):
        return "returned but too low"
    if diagnosis is None or diagnosis.error:
        return "not returned"
    if diagnosis.deep_rank is not None and len(missing) == len(evidence.wants):  # else the rank of one found
        return "returned but too low"
    return _unreturned(missing, answers(probe, history), diagnosis.stored)


def _unreturned(
    missing: Iterable[Want], held: Mapping[Want, list[Memory]], stored: Mapping[str, bool]
) -> str:
    known = [stored[memory.id] for want in missing for memory in held[want] if memory.id in stored]
    if not known:
        return "not returned"
    return "stored but not returned" if any(known) else "not stored"


def _miscounted(probe: Probe, evidence: Evidence) -> str:
    returned = len(evidence.hits)
    limits = [
        e for e in probe.expectations if e.kind in ("at_most", "exactly") and not holds(probe, evidence, e)
    ]
    if any(returned < (limit.n or 0) for limit in limits):
        return "not returned"
    return "limit not honoured" if limits and returned > probe.k else "unwanted returned"


def _is_one_of(hit: Hit, memories: Iterable[Memory]) -> bool:
    return any(hit.id == memory.id or hit.text == memory.text for memory in memories)


def _is_foreign(probe: Probe, hit: Hit, history: History) -> bool:
    """Whether the hit is a memory that the question's scope does not cover."""
    mine = [memory for memory in history.held.values() if _is_one_of(hit, [memory])]
    session = None if probe.all_sessions else probe.session or history.session
    return bool(mine) and not any(_covers(probe, session, memory) for memory in mine)


def _covers(probe: Probe, session: str | None, memory: Memory) -> bool:
    return (
        memory.user == probe.user
        and (not probe.domains or memory.domain in probe.domains)
        and session in (None, memory.session)
    )
