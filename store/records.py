"""What goes into the record: plain, frozen data that `store/writes.py` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

RunStatus = Literal["running", "whole", "invalid", "void", "interrupted"]
ClosedStatus = Literal["whole", "invalid", "void", "interrupted"]
CaseStatus = Literal["ok", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One case of a suite. `hash` tells an edited case from its former self; `story` is what a person
    reads on the Case page, any JSON value by name."""

    name: str
    hash: str
    query: str
    k: int = 5
    tags: tuple[str, ...] = ()
    critical: bool = False
    cluster: str | None = None
    source: str = ""
    story: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteRecord:
    """A suite as it stands now. `plants` counts the memories it plants; `licence` (an SPDX identifier, or in
    words) and `citation` travel with its results, "" where there is none to name."""

    name: str
    kind: str
    origin: str
    version: str
    plants: int
    cases: tuple[CaseRecord, ...]
    owner: str = "default"
    licence: str = ""
    citation: str = ""


class FindingRecord(NamedTuple):
    """One thing wrong with a suite, as lint tells it."""

    file: str
    line: int
    case: str
    rule: str
    severity: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class LintRecord:
    """What lint found, by which `rules`. Of `asked` cases that both floors could be asked, `telling` ones
    tell a memory from a floor; None: the floors were not asked."""

    rules: str
    findings: tuple[FindingRecord, ...]
    asked: int | None = None
    telling: int | None = None


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run about to start. `token` is the fencing token of the backend's lease; `subset` says which
    part of the suite is run, '' for the whole of it; `cases_total` counts cases x trials."""

    suite_version_id: int
    backend_id: int
    environment_id: int | None
    trigger: str
    token: int
    cases_total: int
    scenarios_total: int
    scorer_version: str
    subset: str = ""
    trials: int = 1
    meta: Mapping[str, Any] = field(default_factory=dict)
    owner: str = "default"


@dataclass(frozen=True, slots=True)
class NewControl:
    """The frozen release that runs beside a run: its backend as it is known by name, type and `config`
    (without secrets), the `token` of its lease, and the `release` that it is."""

    name: str
    type: str
    config: Mapping[str, Any]
    release: str
    environment_id: int | None
    token: int


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What one case came to in one trial. `case` is its name, `trial` counts from 1, `latency_ms` is of
    the call that answered. `scores` holds finite numbers by metric name: what does not apply is absent.
    `detail` is what came back, kept beside the row: hits, reply, error, usage, diagnosis."""

    case: str
    trial: int
    status: CaseStatus
    failure: str | None = None
    latency_ms: float | None = None
    attempts: int = 1
    returned_n: int | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """What one scenario came to in one trial: stored whole or not at all. Times in ms; `money` in USD."""

    scenario: str
    trial: int
    status: Literal["ok", "error"]
    plants: int = 0
    plant_ms: float | None = None
    settle_ms: float | None = None
    ingest_calls: int = 0
    ingest_tokens: int = 0
    money: float = 0.0
    attempts: int = 1
    error: str | None = None
    cases: tuple[CaseOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class MutantRecord:
    """What a suite made of one fault: `meaning` says what the fault does; `lost` counts cases that it
    passes without it, `critical_lost` the critical ones among them; `kind` is what the failure was called,
    and `kind_right` whether that is what the fault should be called."""

    fault: str
    meaning: str
    detected: bool
    lost: int
    critical_lost: int
    kind: str | None
    kind_right: bool


@dataclass(frozen=True, slots=True)
class Rollup:
    """One metric over the cases of a run, or over those of one tag ('' = all). `n` counts what `mean` is
    of; `low` and `high` bound its interval, None where there is none."""

    metric: str
    tag: str
    n: int
    mean: float
    low: float | None
    high: float | None


class VerdictEntry(NamedTuple):
    """What is said of a run after `looks` looks. `content`: the evidence, as JSON values."""

    run_id: int
    looks: int
    verdict: str
    stage: str
    provisional: bool
    accepted: bool
    content: Mapping[str, Any]


class RequestRow(NamedTuple):
    """What the dashboard, the API or the command line asks the collector to do."""

    id: int
    kind: str
    payload: dict[str, Any]
    state: str
    author: str
    created_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    run_ids: list[int]
    error: str | None
