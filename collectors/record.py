"""Between the words of a suite and the rows of the record, both ways. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any

from collectors.backend import Hit, Observation, Usage
from collectors.backends.base import well_formed
from collectors.census import Census
from collectors.failures import Diagnosis
from collectors.scenario import Answer, Played
from collectors.scorers import Evidence
from collectors.suite import (
    Amend,
    Expectation,
    Forget,
    ForgetUser,
    Memory,
    Plant,
    Probe,
    Session,
    Step,
    Suite,
)
from store.records import CaseOutcome, CaseRecord, ScenarioOutcome, SuiteRecord


def suite_record(suite: Suite, owner: str = "default") -> SuiteRecord:
    cases = tuple(case_record(probe) for probe in suite.probes)
    return SuiteRecord(
        suite.name, suite.kind, suite.origin, suite.version, suite.plants, cases, owner, suite.licence,
        suite.citation,
    )  # fmt: skip


def case_record(probe: Probe) -> CaseRecord:
    return CaseRecord(
        probe.case,
        probe.hash,
        probe.query,
        probe.k,
        probe.tags,
        probe.critical,
        probe.cluster,
        probe.source,
        story(probe),
    )


# The story of a case: what a person reads, and what a later scorer judges by


def story(probe: Probe) -> dict[str, Any]:
    return {
        "background": probe.background,
        "steps": [_step(step) for step in probe.story],
        "query": probe.query,
        "k": probe.k,
        "user": probe.user,
        "domains": list(probe.domains),
        "session": probe.session,
        "leg": probe.leg,
        "abstain": probe.abstain,
        "expectations": [_told(expectation) for expectation in probe.expectations],
    }


def _step(step: Step) -> dict[str, Any]:
    match step:
        case Plant(memories):
            return {"plant": [_memory(memory) for memory in memories]}
        case Amend(id, text):
            return {"amend": id, "text": text}
        case Forget(ids):
            return {"forget": list(ids)}
        case ForgetUser(user):
            return {"forget_user": user}
        case Session(id):
            return {"session": id}
        case _:
            return {"reopen": True}


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in _told(memory).items()
    }


def _told(words: Memory | Expectation | Usage) -> dict[str, Any]:
    """The fields that say something, uncopied: `asdict` would copy each value of every case."""
    return _without_empty({name: getattr(words, name) for name in words.__slots__})


_EMPTY: tuple[Any, ...] = (None, (), {}, "")


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in _EMPTY}


def asked(case: str, told: Mapping[str, Any]) -> Probe:
    """The question of a stored story, with all that scoring needs."""
    expectations = tuple(
        Expectation(
            e["kind"],
            tuple(e.get("patterns", ())),
            tuple(e.get("ids", ())),
            e.get("n"),
            e.get("section"),
            e.get("tolerance"),
            tuple((name, value) for name, value in e.get("values", ())),
        )
        for e in told["expectations"]
    )
    return Probe(
        case, told["query"], expectations, told["k"], told["user"], leg=told["leg"], abstain=told["abstain"]
    )


# Results


def scenario_outcome(scenario: str, trial: int, played: Played) -> ScenarioOutcome:
    return ScenarioOutcome(
        scenario=scenario,
        trial=trial,
        status="error" if played.error else "ok",
        plants=played.plants,
        plant_ms=played.plant_ms,
        settle_ms=played.settle_ms,
        ingest_calls=played.ingest.calls,
        ingest_tokens=played.ingest.tokens,
        money=played.ingest.money + played.asking.money,
        attempts=played.attempts,
        error="; ".join(filter(None, (played.error or played.settle_error, played.left))) or None,
        cases=tuple(case_outcome(answer, trial) for answer in played.answers),
    )


def case_outcome(answer: Answer, trial: int) -> CaseOutcome:
    seen = answer.observation
    status = "error" if seen.error else "skipped" if seen.skipped else "ok"
    return CaseOutcome(
        case=answer.probe.case,
        trial=trial,
        status=status,  # type: ignore[arg-type]  # mypy widens the literals of a conditional
        failure=answer.failure,
        latency_ms=seen.latency_ms,
        attempts=seen.attempts,
        returned_n=len(seen.hits) if status == "ok" and seen.census is None else None,
        scores=answer.scores,
        detail=_detail(answer),
    )


def _detail(answer: Answer) -> dict[str, Any]:
    seen = answer.observation
    return _without_empty(
        {
            "hits": [_hit(hit) | _marks(rank, answer.evidence) for rank, hit in enumerate(seen.hits)],
            "again": None if seen.again is None else [_hit(hit) for hit in seen.again],
            "reply": _json_safe(seen.reply),
            "error": seen.error,
            "skipped": seen.skipped,
            "usage": _used(seen.usage),
            "diagnosis": _found(answer.diagnosis) if answer.diagnosis else None,
            "census": seen.census._asdict() if seen.census else None,
        }
    )


def _used(usage: Usage) -> dict[str, Any]:
    return {name: value for name, value in _told(usage).items() if value}


def _found(diagnosis: Diagnosis) -> dict[str, Any]:
    return diagnosis._asdict() | {"usage": _used(diagnosis.usage)}


def _hit(hit: Hit) -> dict[str, Any]:
    metadata = _json_safe(hit.metadata)
    score = None if hit.score is None else float(hit.score)  # numpy's float32 is no JSON
    told = {"id": well_formed(hit.id), "text": well_formed(hit.text), "score": score, "metadata": metadata}
    return _without_empty(told)


def _marks(rank: int, evidence: Evidence | None) -> dict[str, bool]:
    """What the hit at that rank is; only what it is stands in the record."""
    if evidence is None:
        return {}
    first = evidence.unwanted_first and rank == 0
    marks = {"wanted": rank in evidence.wanted, "unwanted": rank in evidence.unwanted or first}
    return {name: True for name, holds in marks.items() if holds}


def rejudged(detail: Mapping[str, Any], evidence: Evidence | None, error: str | None) -> dict[str, Any]:
    """The detail of an answer under another judgement; `error` says why there is none."""
    hits = [
        {name: value for name, value in hit.items() if name not in ("wanted", "unwanted")}
        | _marks(rank, evidence)
        for rank, hit in enumerate(detail["hits"])
    ]
    return _without_empty({**detail, "hits": hits, "error": error})


DEPTH = 8
"""Levels of metadata that are kept as they are; what lies deeper, a cycle at the latest, becomes text."""


def _json_safe(value: Any, depth: int = DEPTH) -> Any:
    """What a backend may have put anywhere, as JSON and UTF-8 can hold it."""
    if value is None or isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return value
    if depth and isinstance(value, Mapping):
        return {well_formed(str(name)): _json_safe(held, depth - 1) for name, held in value.items()}
    if depth and isinstance(value, list | tuple):
        return [_json_safe(held, depth - 1) for held in value]
    return well_formed(str(value))


def observed(detail: Mapping[str, Any]) -> Observation:
    """The answer that a stored detail holds, for another scorer to judge."""
    census = Census(**detail["census"]) if "census" in detail else None
    again = _hits(detail["again"]) if "again" in detail else None
    return Observation(_hits(detail.get("hits", ())), detail.get("reply"), census=census, again=again)


def _hits(told: Iterable[Mapping[str, Any]]) -> tuple[Hit, ...]:
    return tuple(
        Hit(hit.get("id", ""), hit.get("text", ""), hit.get("score"), hit.get("metadata", {})) for hit in told
    )
