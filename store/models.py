"""The tables of the record. Their change goes with a migration in `store/migrations/`.

The models stand on a metadata of their own, so that a hot reload of this module defines them anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, Exists, Index, MetaData, Text, UniqueConstraint, exists
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

from store.database import NOW


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC in and out; stored without a zone, so that it sorts as text."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a datetime without a zone cannot be stored: {value.isoformat()}")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class JsonText(TypeDecorator[Any]):
    """A JSON value as compact text with sorted keys: equal values are equal text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else to_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def to_json(value: Any) -> str:
    """Compact JSON with sorted keys. Raises ValueError for NaN and infinity, which JSON does not know."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
    )


def _plain(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be kept as JSON")


class Base(SQLModel):
    metadata = MetaData()


class Suite(Base, table=True):
    """`version` is the one in force, which is not the newest one when a suite is set back."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    kind: str
    origin: str
    version: str
    project: str
    owner: str


class SuiteVersion(Base, table=True):
    __tablename__ = "suite_version"
    __table_args__ = (UniqueConstraint("suite_id", "version"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    version: str
    cases: int
    plants: int
    created_at: datetime = Field(sa_type=UtcDateTime)


class Case(Base, table=True):
    __table_args__ = (UniqueConstraint("suite_id", "name", "hash"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    name: str
    hash: str
    query: str
    k: int
    tags: list[str] = Field(sa_type=JsonText)
    critical: bool
    cluster: str | None
    source: str
    story: dict[str, Any] = Field(sa_type=JsonText)
    created_at: datetime = Field(sa_type=UtcDateTime)


class SuiteVersionCase(Base, table=True):
    __tablename__ = "suite_version_case"
    __table_args__ = {"sqlite_with_rowid": False}

    suite_version_id: int = Field(foreign_key="suite_version.id", primary_key=True)
    case_id: int = Field(foreign_key="case.id", primary_key=True)


class SuiteChange(Base, table=True):
    """Why a version of a suite came to be. Of several reasons for one version the last one stands."""

    __tablename__ = "suite_change"

    id: int | None = Field(default=None, primary_key=True)
    suite_version_id: int = Field(foreign_key="suite_version.id", index=True)
    reason: str
    author: str
    at: datetime = Field(sa_type=UtcDateTime)


class CaseState(Base, table=True):
    """What a person decided about a case: the last row of a name is in force, the others are its history.
    state: quarantine (until `expires`), released or retired."""

    __tablename__ = "case_state"
    __table_args__ = (Index("ix_case_state_of", "suite_id", "name"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    name: str
    state: str
    owner: str
    reason: str
    expires: datetime | None = Field(sa_type=UtcDateTime)
    author: str
    at: datetime = Field(sa_type=UtcDateTime)


class LintReport(Base, table=True):
    """That a version was looked at, by which `rules`. Of `asked` cases that both floors could be asked,
    `telling` ones tell a memory from a floor."""

    __tablename__ = "lint_report"

    suite_version_id: int = Field(foreign_key="suite_version.id", primary_key=True)
    rules: str
    asked: int | None
    telling: int | None
    at: datetime = Field(sa_type=UtcDateTime)


class Finding(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    suite_version_id: int = Field(foreign_key="suite_version.id", index=True)
    file: str
    line: int
    case_name: str
    rule: str
    severity: str
    message: str
    hint: str


class Mutant(Base, table=True):
    """What a version of a suite made of one fault put into a backend. `kind` None: nothing was noticed."""

    id: int | None = Field(default=None, primary_key=True)
    suite_version_id: int = Field(foreign_key="suite_version.id", index=True)
    backend: str
    fault: str
    meaning: str
    detected: bool
    lost: int
    critical_lost: int
    kind: str | None
    kind_right: bool
    at: datetime = Field(sa_type=UtcDateTime)


class ExpectedCount(Base, table=True):
    """How many memories a leg of a standing index should hold; `source` says who knows: never the index.
    The last row of a leg is in force."""

    __tablename__ = "expected_count"
    __table_args__ = (Index("ix_expected_count_of", "suite_id", "backend_id"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    backend_id: int = Field(foreign_key="backend.id")
    leg: str
    expected: int
    source: str
    author: str
    at: datetime = Field(sa_type=UtcDateTime)


class Backend(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    type: str
    config: dict[str, Any] = Field(sa_type=JsonText)
    project: str
    owner: str


class Environment(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    hash: str = Field(unique=True)
    content: dict[str, Any] = Field(sa_type=JsonText)
    created_at: datetime = Field(sa_type=UtcDateTime)


class Scorer(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    version: str = Field(unique=True)


class Run(Base, table=True):
    """`token` is the fencing token under which the run writes; `cancel` asks the runner to stop. `subset` is
    the tag that narrowed the suite, '' for the whole of it; with an @ it says what else the run was for."""

    __table_args__ = (Index("ix_run_series", "suite_id", "backend_id", "started_at"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    suite_version_id: int = Field(foreign_key="suite_version.id")
    backend_id: int = Field(foreign_key="backend.id")
    environment_id: int | None = Field(foreign_key="environment.id")
    project: str
    owner: str
    status: str
    reason: str | None
    trigger: str
    subset: str
    trials: int
    scorer_id: int = Field(foreign_key="scorer.id")
    meta: dict[str, Any] = Field(sa_type=JsonText)
    token: int
    cancel: bool
    cases_total: int
    cases_done: int
    errors_done: int
    scenarios_total: int
    started_at: datetime = Field(sa_type=UtcDateTime, index=True)
    finished_at: datetime | None = Field(sa_type=UtcDateTime)


class Control(Base, table=True):
    """`control_id` is the run that a frozen `release` made beside the run `run_id`, in the same hours. Its
    backend is no backend of the team's: it is there to be compared with."""

    control_id: int | None = Field(default=None, foreign_key="run.id", primary_key=True)
    run_id: int = Field(foreign_key="run.id", index=True, unique=True)
    release: str


class Verdict(Base, table=True):
    """What was said of a run: after its first look, and once more after each look that followed. The last
    row of a run is in force. `content` is all the evidence, as `store/verdicts.py` gives it; the columns
    repeat what is asked for in bulk. `accepted`: the run may stand in baselines."""

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    looks: int
    verdict: str
    stage: str
    provisional: bool
    accepted: bool
    content: dict[str, Any] = Field(sa_type=JsonText)
    at: datetime = Field(sa_type=UtcDateTime)

    __table_args__ = (Index("ix_verdict_run", "run_id"),)


class BaselineChange(Base, table=True):
    """What a person decided about the baseline of a series. action: pin, hold, exclude, include, intended or
    reset; rows are never changed, the baseline in force is what follows from all of them."""

    __tablename__ = "baseline_change"
    __table_args__ = (Index("ix_baseline_change_of", "suite_id", "backend_id"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    backend_id: int = Field(foreign_key="backend.id")
    action: str
    run_ids: list[int] = Field(sa_type=JsonText)
    reason: str
    author: str
    at: datetime = Field(sa_type=UtcDateTime)


class ScenarioResult(Base, table=True):
    __tablename__ = "scenario_result"
    __table_args__ = (UniqueConstraint("run_id", "trial", "scenario"),)

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    trial: int
    scenario: str
    status: str
    plants: int
    plant_ms: float | None
    settle_ms: float | None
    ingest_calls: int
    ingest_tokens: int
    money: float
    attempts: int
    error: str | None


class CaseResult(Base, table=True):
    __tablename__ = "case_result"
    __table_args__ = (
        UniqueConstraint("run_id", "case_id", "trial"),
        Index("ix_case_result_history", "case_id", "run_id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    case_id: int = Field(foreign_key="case.id")
    trial: int
    status: str
    failure: str | None
    latency_ms: float | None
    attempts: int
    returned_n: int | None


class Score(Base, table=True):
    """`metric_id` is a number of `store/metrics.py`, fixed there; no table repeats the names."""

    __table_args__ = {"sqlite_with_rowid": False}

    case_result_id: int = Field(foreign_key="case_result.id", primary_key=True)
    metric_id: int = Field(primary_key=True)
    scorer_id: int = Field(foreign_key="scorer.id", primary_key=True)
    value: float


class Detail(Base, table=True):
    """Texts stand beside the results, so that scans of the results stay small."""

    case_result_id: int = Field(foreign_key="case_result.id", primary_key=True)
    content: dict[str, Any] = Field(sa_type=JsonText)


class Journal(Base, table=True):
    """What the processes of a run's backend told beside its answers: what they printed, what was refused."""

    run_id: int = Field(foreign_key="run.id", primary_key=True)
    text: str = Field(sa_type=Text)


class Removal(Base, table=True):
    """What retention took from a run, `details` or `results`, and after how long: "90d"."""

    __table_args__ = {"sqlite_with_rowid": False}

    run_id: int = Field(foreign_key="run.id", primary_key=True)
    what: str = Field(primary_key=True)
    after: str
    at: datetime = Field(sa_type=UtcDateTime)


class Spent(Base, table=True):
    """USD that a run spent on a `day` in UTC, such as 2026-03-04."""

    __table_args__ = {"sqlite_with_rowid": False}

    day: str = Field(primary_key=True)
    run_id: int = Field(foreign_key="run.id", primary_key=True)
    money: float


class RollupRow(Base, table=True):
    """The key begins with what a chart asks for: one series is one range of it."""

    __tablename__ = "rollup"
    __table_args__ = (Index("ix_rollup_run", "run_id", "tag"), {"sqlite_with_rowid": False})

    backend_id: int = Field(foreign_key="backend.id", primary_key=True)
    suite_id: int = Field(foreign_key="suite.id", primary_key=True)
    metric_id: int = Field(primary_key=True)
    tag: str = Field(primary_key=True)
    run_id: int = Field(foreign_key="run.id", primary_key=True)
    scorer_id: int = Field(foreign_key="scorer.id", primary_key=True)
    n: int
    mean: float
    low: float | None
    high: float | None


class Mark(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime, index=True)
    text: str
    kind: str
    author: str
    meta: dict[str, Any] = Field(sa_type=JsonText)
    project: str


class Event(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    level: str
    source: str
    message: str
    run_id: int | None = Field(foreign_key="run.id")


class Heartbeat(Base, table=True):
    name: str = Field(primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    pid: int
    host: str
    started_at: datetime = Field(sa_type=UtcDateTime)


class ScheduleState(Base, table=True):
    __tablename__ = "schedule_state"

    name: str = Field(primary_key=True)
    last_fire: datetime | None = Field(sa_type=UtcDateTime)
    next_fire: datetime | None = Field(sa_type=UtcDateTime)
    enabled: bool


class Fire(Base, table=True):
    """A time at which a schedule should fire, written down ahead, and what became of it. `due` is later than
    `scheduled_for` by the schedule's jitter; `token` is that of the leader who took it. state: expected,
    claimed, done, failed, skipped or missed."""

    __table_args__ = (Index("ix_fire_state", "state", "due"), {"sqlite_with_rowid": False})

    schedule: str = Field(primary_key=True)
    scheduled_for: datetime = Field(sa_type=UtcDateTime, primary_key=True)
    due: datetime = Field(sa_type=UtcDateTime)
    state: str
    token: int | None
    claimed_at: datetime | None = Field(sa_type=UtcDateTime)
    started_at: datetime | None = Field(sa_type=UtcDateTime)
    finished_at: datetime | None = Field(sa_type=UtcDateTime)
    run_ids: list[int] = Field(sa_type=JsonText)
    reason: str | None


class Request(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    kind: str
    payload: dict[str, Any] = Field(sa_type=JsonText)
    state: str = Field(index=True)
    author: str
    created_at: datetime = Field(sa_type=UtcDateTime)
    claimed_at: datetime | None = Field(sa_type=UtcDateTime)
    finished_at: datetime | None = Field(sa_type=UtcDateTime)
    run_ids: list[int] = Field(sa_type=JsonText)
    error: str | None


class Lease(Base, table=True):
    """`expires` counts seconds since 1970 on the database's clock: one clock for all who ask."""

    name: str = Field(primary_key=True)
    owner: str
    token: int
    expires: float


class Change(Base, table=True):
    """Numbers by name. "record" is a counter that rises when something shown has changed: what caches hang
    on. What a machine named by a key of its own has the id that was made for it."""

    name: str = Field(primary_key=True)
    n: int


# The tables, for Core statements: Core inserts are 14 times as fast as objects through the ORM.
suite, suite_version, case, suite_version_case, backend, environment, scorer, run = (
    Base.metadata.tables[name]
    for name in (
        "suite",
        "suite_version",
        "case",
        "suite_version_case",
        "backend",
        "environment",
        "scorer",
        "run",
    )
)
scenario_result, case_result, score, detail, rollup = (
    Base.metadata.tables[name] for name in ("scenario_result", "case_result", "score", "detail", "rollup")
)
mark, event, heartbeat, request, lease, change = (
    Base.metadata.tables[name] for name in ("mark", "event", "heartbeat", "request", "lease", "change")
)
schedule_state, fire = (Base.metadata.tables[name] for name in ("schedule_state", "fire"))
removal, spent = (Base.metadata.tables[name] for name in ("removal", "spent"))
lint_report, finding, mutant, journal = (
    Base.metadata.tables[name] for name in ("lint_report", "finding", "mutant", "journal")
)
suite_change, case_state, expected_count = (
    Base.metadata.tables[name] for name in ("suite_change", "case_state", "expected_count")
)
verdict, baseline_change, control = (
    Base.metadata.tables[name] for name in ("verdict", "baseline_change", "control")
)


BACKEND_LEASE = "backend:"
"""Prefix of the leases of backends, since the leader's stands in the same table."""

LEADER_LEASE = "collector"
"""The lease of the collector that leads: it alone takes fires and requests."""


def run_is_live() -> Exists:
    """Whether the run at hand still holds its backend's lease. A `running` run that does not was killed or
    deposed."""
    return exists().where(
        backend.c.id == run.c.backend_id,
        lease.c.name == BACKEND_LEASE + backend.c.name,
        lease.c.token == run.c.token,
        lease.c.expires > NOW,
    )
