"""What ran beside what: the controls of backends, and their nights as a verdict needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.metrics import METRICS
from store.queries.common import shown_status

PASS = METRICS["pass"].id


class ControlRow(NamedTuple):
    """The control of a backend, as of its newest run."""

    backend: str
    name: str
    release: str


class Beside(NamedTuple):
    """The control of a run."""

    control_id: int
    backend: str
    release: str
    status: str
    reason: str | None


class Said(NamedTuple):
    """The verdict in force of a run. `why`: where nothing can be told, why not; `moved`: other metrics than
    the pass rate that moved, and whether for the worse."""

    verdict: str
    stage: str
    why: str | None
    moved: frozenset[tuple[str, bool]] = frozenset()


class ControlNight(NamedTuple):
    """A run and its control, both whole: `lost` cases passed on the control and not on the backend, `gained`
    the other way round, `dropped` ones had an error on either side. `backend`, `control`: what was said of
    each against its own baseline; None: nothing yet."""

    run_id: int
    control_id: int
    lost: int
    gained: int
    dropped: int
    backend: Said | None
    control: Said | None


class ControlRecord(NamedTuple):
    """What a run's control has to tell. `unread`: why its run of this night cannot be read, None when it is
    the last of `nights`, oldest first: those with the same release of the control and of the backend, and
    since the baseline last began anew."""

    control_id: int
    release: str
    unread: str | None
    nights: tuple[ControlNight, ...]


def controls(db: Database) -> list[ControlRow]:
    """Every backend that has had a control, once for each, with the newest release."""
    arm, (ours, theirs) = _arms()
    of, name = m.backend.alias("of"), m.backend.alias("name")
    newest = sa.select(sa.func.max(m.control.c.control_id).label("id")).join(
        theirs, theirs.c.id == m.control.c.control_id
    )
    query = (
        arm.with_only_columns(of.c.name, name.c.name, m.control.c.release)
        .join(of, of.c.id == ours.c.backend_id)
        .join(name, name.c.id == theirs.c.backend_id)
        .where(m.control.c.control_id.in_(newest.group_by(theirs.c.backend_id).correlate(None)))
        .order_by(of.c.id)
    )
    with db.read() as connection:
        return [ControlRow(*row) for row in connection.execute(query)]


def control_beside(db: Database, run_id: int) -> Beside | None:
    with db.read() as connection:
        return _beside(connection, run_id)


def _beside(connection: Connection, run_id: int) -> Beside | None:
    query = (
        sa.select(
            m.run.c.id, m.backend.c.name, m.control.c.release, shown_status().label("status"), m.run.c.reason
        )
        .join(m.control, m.control.c.control_id == m.run.c.id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.control.c.run_id == run_id)
    )  # fmt: skip
    row = connection.execute(query).first()
    return Beside(*row) if row else None


def control_record(connection: Connection, run_id: int, quarantined: Collection[str]) -> ControlRecord | None:
    """None for a run without a control. Cases in quarantine are no pairs."""
    beside = _beside(connection, run_id)
    if beside is None:
        return None
    pairs = _pairs(connection, run_id, beside.release)
    counts = _counts(connection, list(pairs.values()), quarantined)
    said = _said(connection, [*pairs, *pairs.values()])
    nights = tuple(
        ControlNight(ours, theirs, *counts.get(theirs, (0, 0, 0)), said.get(ours), said.get(theirs))
        for ours, theirs in pairs.items()
    )
    unread = None if run_id in pairs else _unread(beside)
    return ControlRecord(beside.control_id, beside.release, unread, nights)


def controlled_nights(connection: Connection, run_id: int) -> list[int]:
    """The runs that what the control of a run says is read from, its own and the control's."""
    beside = _beside(connection, run_id)
    pairs = _pairs(connection, run_id, beside.release) if beside else {}
    return [*pairs, *pairs.values()]


def _unread(beside: Beside) -> str:
    if beside.status == "whole":
        return f"its run {beside.control_id} was scored by another scorer"
    why = f": {beside.reason}" if beside.reason else ""
    return f"its run {beside.control_id} is {beside.status}{why}"


def _arms() -> tuple[sa.Select[Any], tuple[Any, Any]]:
    ours, theirs = m.run.alias("ours"), m.run.alias("theirs")
    joined = (
        sa.select(m.control.c.run_id, m.control.c.control_id)
        .join(ours, ours.c.id == m.control.c.run_id)
        .join(theirs, theirs.c.id == m.control.c.control_id)
    )
    return joined, (ours, theirs)


def _pairs(connection: Connection, run_id: int, release: str) -> dict[int, int]:
    """Run -> its control's run, of this series up to this run, oldest first. They begin anew with another
    release of either, another configuration, and after a decision that began the baseline anew: none of it
    is read from the answers that are counted, so that the count may still be read after every night."""
    found = _nights(connection, run_id, release)
    contents = _contents(connection, {night.environment_id for night in found})
    systems = [_system(contents.get(night.environment_id, {})) for night in found]
    first = max((n for n, system in enumerate(systems) if system != systems[-1]), default=-1) + 1
    begun = _begun_anew(connection, run_id)
    return {
        night.run_id: night.control_id for night in found[first:] if begun is None or night.started_at > begun
    }


def _contents(connection: Connection, ids: Set[int | None]) -> Mapping[int | None, Mapping[str, Any]]:
    environment = m.environment.c
    query = sa.select(environment.id, environment.content).where(environment.id.in_(ids - {None}))
    return {row.id: row.content for row in connection.execute(query)}


def _system(environment: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The backend's own packages, and how it is configured."""
    packages, own = environment.get("packages") or {}, environment.get("of_backend") or {}
    return {name: packages.get(name) for name in own}, environment.get("config") or {}


def _begun_anew(connection: Connection, run_id: int) -> datetime | None:
    """When somebody last said so, before this run began."""
    this, made = m.run.alias("this"), m.baseline_change
    query = (
        sa.select(made.c.at)
        .join(this, sa.and_(this.c.suite_id == made.c.suite_id, this.c.backend_id == made.c.backend_id))
        .where(this.c.id == run_id, made.c.action.in_(("intended", "reset")), made.c.at < this.c.started_at)
    )
    return connection.execute(query.order_by(made.c.at.desc()).limit(1)).scalar()


def _nights(connection: Connection, run_id: int, release: str) -> Sequence[sa.Row[Any]]:
    """Oldest first. The run itself may be about to close."""
    arm, (ours, theirs) = _arms()
    this = sa.select(m.run).where(m.run.c.id == run_id).subquery()
    query = (
        arm.add_columns(ours.c.environment_id, ours.c.started_at)
        .join(this, sa.and_(this.c.suite_id == ours.c.suite_id, this.c.backend_id == ours.c.backend_id))
        .where(m.control.c.release == release, theirs.c.status == "whole")
        .where(sa.or_(ours.c.status == "whole", ours.c.id == run_id))
        .where(ours.c.scorer_id == theirs.c.scorer_id)
        .where(sa.tuple_(ours.c.started_at, ours.c.id) <= sa.tuple_(this.c.started_at, this.c.id))
        .order_by(ours.c.started_at, ours.c.id)
    )
    return connection.execute(query).all()


def _counts(
    connection: Connection, control_ids: Sequence[int], quarantined: Collection[str]
) -> Mapping[int, tuple[int, int, int]]:
    """By control's run: cases lost, gained, dropped. Equal ids are the same case with the same hash."""
    ours, theirs = (
        _answers(side, control_ids, quarantined).subquery(name)
        for side, name in ((m.control.c.run_id, "our"), (m.control.c.control_id, "their"))
    )
    unknown = sa.or_(ours.c.passed.is_(None), theirs.c.passed.is_(None))
    erred = sa.and_(unknown, ours.c.erred + theirs.c.erred > 0)
    told = (theirs.c.passed > ours.c.passed, theirs.c.passed < ours.c.passed, erred)
    same = sa.and_(ours.c.control_id == theirs.c.control_id, ours.c.case_id == theirs.c.case_id)
    query = (
        sa.select(ours.c.control_id, *(sa.func.sum(sa.case((one, 1), else_=0)) for one in told))
        .join(theirs, same)
        .group_by(ours.c.control_id)
    )
    return {control_id: (lost, gained, gone) for control_id, lost, gained, gone in connection.execute(query)}


def _answers(
    side: sa.ColumnElement[int], control_ids: Sequence[int], quarantined: Collection[str]
) -> sa.Select[Any]:
    """By pair and case: 1 for one that passed in more than half of its trials, else 0; None without an
    answer."""
    result, score = m.case_result.c, m.score.c
    share = sa.func.avg(sa.case((score.value > 0.5, 1.0), (score.value <= 0.5, 0.0)))
    is_pass = sa.and_(
        score.case_result_id == result.id, score.metric_id == PASS, score.scorer_id == m.run.c.scorer_id
    )
    return (
        sa.select(
            m.control.c.control_id,
            result.case_id,
            sa.case((share > 0.5, 1), (share <= 0.5, 0)).label("passed"),
            sa.func.max(sa.case((result.status == "error", 1), else_=0)).label("erred"),
        )
        .select_from(m.control)
        .join(m.run, m.run.c.id == side)
        .join(m.case_result, result.run_id == side)
        .join(m.case, m.case.c.id == result.case_id)
        .outerjoin(m.score, is_pass)
        .where(m.control.c.control_id.in_(control_ids), m.case.c.name.not_in(list(quarantined)))
        .group_by(m.control.c.control_id, result.case_id)
    )


def _said(connection: Connection, run_ids: Sequence[int]) -> dict[int, Said]:
    """The last verdict of each run."""
    said = m.verdict.c
    query = sa.select(said.run_id, said.verdict, said.stage, said.content).order_by(said.id)
    rows = connection.execute(query.where(said.run_id.in_(run_ids)))
    return {
        row.run_id: Said(row.verdict, row.stage, _why(row.verdict, row.content), _moved(row.content))
        for row in rows
    }


def _moved(content: Mapping[str, Any]) -> frozenset[tuple[str, bool]]:
    return frozenset((one["metric"], one["worse"]) for one in content["moved"])


def _why(verdict: str, content: Mapping[str, Any]) -> str | None:
    if verdict != "cannot_tell":
        return None
    return content["reason"] or content.get("untaken") or "a suspicion that was not looked at again"
