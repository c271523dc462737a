"""What a closed run makes of the alerts: gathered here, said by `store/sightings.py`, put together by
`store/alert_life.py`.

The record says which runs nobody has looked at yet, so that one which closed just before a kill is looked at
by whoever comes next: nothing is detected twice, and nothing never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from collectors.configured import suite_bars
from store import logs, queries, writes
from store.alert_life import Facts, Turned, advance
from store.changes import Change, sentence
from store.database import Database
from store.errors import DatabaseError, StoreError
from store.queries import CaseRow, RunRow, VerdictRow
from store.settings import Settings
from store.sightings import ClosedRun, Leg, Measured, Sighting, missed, sightings

LOG = logs.get("alerts")
SOURCE = "alerts"
MOST_SUSPECTS = 10
"""As many are kept with an alert; the rest `memtrend diff` tells."""
MOST_TAGS = 3


class Watched(NamedTuple):
    """A run that alerts are looked for in. `about`: the run whose verdict is in force, which a look asks
    again."""

    ended: RunRow
    about: RunRow
    verdict: VerdictRow | None


def detect(
    db: Database,
    settings: Settings,
    route: writes.Route = writes.nobody,
    given_up: set[int] | None = None,
) -> list[Turned]:
    """Look for alerts in every run that has ended since it was last done. One that cannot be looked at for a
    fault of ours is an event and put to those that are `given_up`; the others are looked at all the same."""
    passed_over: set[int] = set() if given_up is None else given_up
    turned: list[Turned] = []
    for run_id in queries.undetected(db):
        if run_id in passed_over:
            continue
        try:
            turned += detect_in(db, settings, run_id, route)
        except DatabaseError:
            raise
        except Exception as error:
            passed_over.add(run_id)
            LOG.error("a run could not be looked at for alerts", run=run_id, exc_info=error)
            told = f"run {run_id} could not be looked at for alerts: {type(error).__name__}"
            writes.add_event(db, "error", SOURCE, told, run_id)
    return turned


def detect_in(
    db: Database, settings: Settings, run_id: int, route: writes.Route = writes.nobody
) -> list[Turned]:
    """What one run that has ended makes of the alerts that stand; nothing where that was done before."""
    found = seen_in(db, settings, run_id)
    if found is None:
        return writes.turn_alerts(db, lambda known: [], run_id=run_id)
    return writes.turn_alerts(db, lambda known: advance(known, *found), route, run_id=run_id)


def seen_in(db: Database, settings: Settings, run_id: int) -> tuple[list[Sighting], Facts] | None:
    """What one run that has ended shows, and what is known beside it; None for one that alerts are not
    for."""
    watched = _watched(db, run_id)
    if watched is None:
        return None
    seen = sightings(_closed(db, settings, watched))
    return seen, _facts(db, watched, seen)


def detect_missed(
    db: Database, settings: Settings, now: datetime, route: writes.Route = writes.nobody
) -> list[Turned]:
    """Schedules that did not run, whoever should have run them. Nothing is written while nothing changes, and
    what a person has closed stays so until another fire is missed."""
    fires: dict[str, list[datetime]] = {}
    for fire in queries.missed(db, now):
        fires.setdefault(fire.schedule, []).append(fire.scheduled_for)
    known = {signal.key.subject: signal.depth for signal in queries.open_signals(db, "missed")}
    late = {
        name: [f"{at:%Y-%m-%dT%H:%MZ}" for at in times]
        for name, times in fires.items()
        if name in known or not queries.was_closed(db, "missed", max(times), name)
    }
    if known == {name: float(len(times)) for name, times in late.items()}:
        return []
    seen = missed(late, {*known, *settings.schedules})
    return writes.turn_alerts(db, lambda standing: advance(standing, seen, Facts(now)), route)


def _watched(db: Database, run_id: int) -> Watched | None:
    """None for what alerts are not for: controls, calibrations, comparisons, gates, which hold a change that
    is not in force yet, runs of a part that says nothing of the whole, suites of which nothing applies."""
    ended = queries.run(db, run_id)
    if ended is None or ended.control_of is not None or ended.trigger == queries.GATE:
        return None
    if ended.subset not in ("", queries.CONFIRM) or (ended.status == "void" and ended.cases_done):
        return None
    about = ended if not ended.subset else queries.run(db, queries.looked_at(ended.trigger))
    if about is None or about.control_of is not None or about.trigger == queries.GATE:
        return None
    return Watched(ended, about, queries.verdict(db, about.id))


def _closed(db: Database, settings: Settings, watched: Watched) -> ClosedRun:
    about, status = watched.about, watched.ended.status
    bars = suite_bars(settings, about.suite) if about.suite in settings.suites else {}
    before = queries.previous_run(db, about.id) if bars else None
    broken = _broken(before, bars) if before else set()
    if watched.ended is not about:
        broken |= _broken(watched.ended, bars)
    counted = queries.census(db, about.id)
    legs = [Leg(name, *counts) for name, counts in counted.legs.items()]
    return ClosedRun(
        about.suite,
        about.backend,
        status,
        verdict=watched.verdict.content if watched.verdict else None,
        measured=_measured(about),
        bars=bars,
        broken_before=frozenset(broken),
        legs=legs,
        tolerance=counted.tolerance,
        failed=queries.failed_cases(db, about.id),
    )


def _measured(run: RunRow) -> dict[str, Measured]:
    return {name: Measured(one.n, one.mean, one.low, one.high) for name, one in run.metrics.items()}


def _broken(run: RunRow, bars: Mapping[str, float]) -> set[str]:
    probe = ClosedRun(run.suite, run.backend, run.status, measured=_measured(run), bars=bars)
    return {one.key.subject for one in sightings(probe) if one.key.kind == "threshold" and one.depth > 0}


# What is known beside the sightings


def _facts(db: Database, watched: Watched, seen: Sequence[Sighting]) -> Facts:
    """Looked up only where something is wrong: most nights nothing is."""
    about, now = watched.about, datetime.now(UTC)
    again = watched.ended is not about
    plain = Facts(now, about.id, again, owner=_owner(db, about))
    if all(one.standing == "clear" for one in seen):
        return plain
    cases = queries.run_cases(db, about.id, with_hits=False)
    suspects, last_good = _suspects(db, watched)
    return plain._replace(
        suspects=[_told(change) for change in suspects[:MOST_SUSPECTS]],
        suspect=_first(suspects),
        shared=_is_shared(watched),
        context=_context(watched, cases),
        last_good_run_id=last_good,
        tags={case.case: case.tags for case in cases},
    )


def _owner(db: Database, run: RunRow) -> str:
    """Of the suite where somebody has it, else of the backend."""
    suite = next((one.owner for one in queries.suites(db) if one.name == run.suite), "default")
    if suite != "default":
        return suite
    return next((one.owner for one in queries.backends(db) if one.name == run.backend), "default")


def _is_shared(watched: Watched) -> bool:
    """Whether the control fell too. What moved beside the pass rate on both tells that of itself alone: a
    fall of the backend's own is no shared one since the machine was slow."""
    control = (watched.verdict.content.get("control") or {}) if watched.verdict else {}
    return control.get("cause") == "shared" or (control.get("cause") == "none" and bool(control["alike"]))


def _suspects(db: Database, watched: Watched) -> tuple[Sequence[Change], int | None]:
    """The likeliest first, and the last good run. Nothing is said of a run that failed: it is held against
    the last one that did not."""
    ended, about = watched.ended, watched.about
    with suppress(StoreError):  # the first run, or one of which nothing is known: there is nothing to compare
        if ended.status == "whole":
            found = queries.changes_to(db, about.id)
        elif before := queries.previous_run(db, ended.id):
            found = queries.changes_between(db, before.id, ended.id)
        else:
            return (), None
        return found.changes.suspects, found.before.id
    return (), None


def _told(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "old": change.old,
        "new": change.new,
        "kind": change.kind,
        "moved_before": change.moved_before,
        "sentence": sentence(change),
    }


def _first(suspects: Sequence[Change]) -> str:
    """What groups alerts of several backends: the same thing changed in the same way, and not without effect
    before."""
    first = next((change for change in suspects if not change.moved_before), None)
    return f"{first.path}: {first.old} -> {first.new}" if first else ""


def _context(watched: Watched, cases: Sequence[CaseRow]) -> dict[str, Any]:
    """What is told beside the evidence: when, of how many, and how the lost ones were lost."""
    about = watched.about
    told = watched.verdict.content if watched.verdict else {}
    lost = set(told.get("lost", ()))
    failures = Counter(case.failure for case in cases if case.case in lost and case.failure)
    return {
        "at": about.started_at.isoformat(),
        "cases": len(cases),
        "failures": dict(failures.most_common()),
        "tags": worst_tags(cases, lost),
    }


def worst_tags(cases: Sequence[CaseRow], lost: Collection[str]) -> list[list[Any]]:
    """[tag, lost cases that bear it, cases that bear it] of the three that most of the lost ones bear. What
    every case bears says nothing of where, and comes last."""
    of_tag = Counter(tag for case in cases for tag in case.tags)
    by_tag = Counter(tag for case in cases if case.case in lost for tag in case.tags)
    worst = sorted(by_tag.most_common(), key=lambda one: of_tag[one[0]] == len(cases))
    return [[tag, n, of_tag[tag]] for tag, n in worst[:MOST_TAGS]]
