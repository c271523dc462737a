"""Backends, runs, and what came of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, Text, UniqueConstraint, text, true
from sqlmodel import Field

from store.columns import JsonText, UtcDateTime
from store.models.base import WITHOUT_ROWID, Base

UNDETECTED = text("NOT detected")


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
    """`detected`: whether alerts have been looked for in it; `token` is the fencing token under which the run
    writes; `cancel` asks the runner to stop. `subset` is
    the tag that narrowed the suite, '' for the whole of it; with an @ it says what else the run was for."""

    __table_args__ = (
        Index("ix_run_series", "suite_id", "backend_id", "started_at"),
        Index("ix_run_undetected", "id", sqlite_where=UNDETECTED, postgresql_where=UNDETECTED),
    )

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
    detected: bool = Field(sa_column_kwargs={"server_default": true()})


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

    __table_args__ = WITHOUT_ROWID

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

    __table_args__ = WITHOUT_ROWID

    run_id: int = Field(foreign_key="run.id", primary_key=True)
    what: str = Field(primary_key=True)
    after: str
    at: datetime = Field(sa_type=UtcDateTime)


class Spent(Base, table=True):
    """USD that a run spent on a `day` in UTC, such as 2026-03-04."""

    __table_args__ = WITHOUT_ROWID

    day: str = Field(primary_key=True)
    run_id: int = Field(foreign_key="run.id", primary_key=True)
    money: float


class RollupRow(Base, table=True):
    """The key begins with what a chart asks for: one series is one range of it."""

    __tablename__ = "rollup"
    __table_args__ = (Index("ix_rollup_run", "run_id", "tag"), WITHOUT_ROWID)

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
