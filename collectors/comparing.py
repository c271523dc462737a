"""May B replace A: the runs that are missing are made, and both sides are held against each other.

A side is live when it can be asked now: a configured backend, or a release of one without runs. It takes
so many trials of the suite in force by the system in force, and two live sides take them in one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from collectors import runs
from collectors.arguments import NO_ANSWER
from collectors.arm import Arm
from collectors.comparison_sides import Asked, NotTwoSides, Part, ambiguous, find
from collectors.configured import load_suite
from collectors.lint.cost import Cost, cost, estimate
from collectors.plans import RunOutcome, RunPlan
from collectors.process import Stop
from collectors.rounds import arms
from collectors.scorers import SCORER_VERSION
from collectors.side_by_side import play_sides
from store import comparison_words, queries
from store.comparisons import WINDOW, Comparison, taken, windows_apart
from store.database import Database
from store.errors import StoreError
from store.queries import RunRow
from store.settings import Settings
from store.words import count

Say = Callable[[str], None]
RunIds = tuple[int, ...]


class NoAnswer(StoreError):
    """A side's runs did not end whole."""

    code = NO_ANSWER


class Held(NamedTuple):
    """What the record holds of a side: `rows`, oldest first; of a live one those that it may take alone."""

    rows: tuple[RunRow, ...]
    live: bool


# Which runs -----------------------------------------------------------------------------------------------


def to_run(a: Held, b: Held, trials: int) -> tuple[bool, bool]:
    """Which sides are asked now. One of the past never is. A live one is where it has too few trials, and two
    live ones together are, so that what drifts is the same for both: also where each has its trials, but a
    run of the one lies more than `WINDOW` from all of the other."""
    lacks = tuple(one.live and not taken(one.rows, trials) for one in (a, b))
    if not (a.live and b.live):
        return lacks[0], lacks[1]
    both = any(lacks) or windows_apart(a.rows, b.rows) > WINDOW
    return both, both


# The comparison -------------------------------------------------------------------------------------------


def compare(db: Database, settings: Settings, asked: Asked, stop: Stop, say: Say) -> Comparison:
    """Raises what `find` does, `NoAnswer` where what was run did not end whole, and what a run raises before
    it begins: `InstanceBusy`, `Stopped`, `OverBudget`."""
    a, b = find(db, settings, asked)
    for line in (*ambiguous(db, asked), *_foreseen(db, settings, asked, a, b)):
        say(line)
    live = not asked.no_run and (a.plan or b.plan)
    sides = _completed(db, asked, (a, b), stop, say) if live else (a.run_ids, b.run_ids)
    if set(sides[0]) & set(sides[1]):
        raise NotTwoSides(f"{a.name} and {b.name} are the same runs ({_listed(sides[0])}): name two sides")
    names = a.name, b.name
    return queries.comparison(
        db, asked.suite, *sides, margin=asked.margin, names=names, with_texts=asked.with_texts
    )


def _foreseen(db: Database, settings: Settings, asked: Asked, a: Part, b: Part) -> list[str]:
    """Whether suite and margin can conclude at all."""
    known = (db, asked.suite, a.run_ids, b.run_ids, asked.margin)
    if a.rows and b.rows:
        return comparison_words.foresight(queries.foresight(*known))
    probes = list(load_suite(settings, asked.suite).probes)
    of = {probe.cluster or probe.case for probe in probes}
    clusters = len(of) if len(of) < len(probes) else None
    return comparison_words.foresight(queries.foresight(*known, len(probes), clusters))


def _completed(
    db: Database, asked: Asked, parts: tuple[Part, Part], stop: Stop, say: Say
) -> tuple[RunIds, RunIds]:
    """The runs of both sides, those among them that were missing and are made here."""
    plans, its_stop = [part.plan for part in parts if part.plan], stop.of_the_next_run()
    with arms(plans, db, [its_stop] * len(plans)) as found:
        for arm in found:
            arm.prepare()
        of = {arm.plan.backend.name: arm for arm in found}
        held = _held(db, asked, parts[0], of), _held(db, asked, parts[1], of)
        needed = to_run(*held, asked.trials)
        now = [one.plan for one, runs_now in zip(parts, needed, strict=True) if one.plan and runs_now]
        for line in (*_from_record(parts, held, needed), *_to_make(db, asked, now)):
            say(line)
        made = _made(db, [of[planned.backend.name] for planned in now], say)
    return _side(parts[0], held[0], made), _side(parts[1], held[1], made)


def _side(part: Part, held: Held, made: Mapping[str, int]) -> RunIds:
    run_id = made.get(part.plan.backend.name) if part.plan else None
    return tuple(row.id for row in held.rows) if run_id is None else (run_id,)


def _held(db: Database, asked: Asked, part: Part, of: Mapping[str, Arm]) -> Held:
    if part.plan is None:
        return Held(part.rows, live=False)
    in_force = part.rows and _is_in_force(db, part.rows[-1], of[part.plan.backend.name])
    return Held(taken(part.rows, asked.trials) if in_force else (), live=True)


def _is_in_force(db: Database, row: RunRow, arm: Arm) -> bool:
    version = (row.suite_version, row.scorer) == (arm.plan.suite.version, SCORER_VERSION)
    return version and queries.is_of_system(db, row, arm.environment or {})


def _made(db: Database, now: Sequence[Arm], say: Say) -> dict[str, int]:
    """Backend -> the run that was made."""
    if not now:
        return {}
    with runs.progress() as show:
        outcomes = play_sides(now, show, say)
        for outcome in outcomes:
            show.end(_ended(db, outcome))
    _refuse_half(db, outcomes)
    return {arm.plan.backend.name: outcome.run_id for arm, outcome in zip(now, outcomes, strict=True)}


def _ended(db: Database, outcome: RunOutcome) -> str:
    row = queries.run(db, outcome.run_id)
    assert row is not None, "a run that has just ended is in the record"
    why = f" ({outcome.reason})" if outcome.reason else ""
    return f"run {row.id}  {row.suite} on {row.backend}: {outcome.status}{why}"


def _refuse_half(db: Database, outcomes: Sequence[RunOutcome]) -> None:
    bad = [outcome for outcome in outcomes if outcome.status != "whole"]
    if not bad:
        return
    told = f"no answer: {'; '.join(_ended(db, outcome) for outcome in bad)}"
    if all(outcome.status == "interrupted" for outcome in bad):
        raise NoAnswer(f"{told}; the same command goes on with it within {_HOURS} hours")
    kept = [outcome.run_id for outcome in outcomes if outcome.status == "whole"]
    raise NoAnswer(f"{told}; {_listed(kept)} is whole and is kept" if kept else told)


_HOURS = round(WINDOW.total_seconds() / 3600)


def _listed(run_ids: Sequence[int]) -> str:
    return ", ".join(f"run {run_id}" for run_id in run_ids)


# What is said before --------------------------------------------------------------------------------------


def _from_record(parts: Sequence[Part], held: Sequence[Held], needed: Sequence[bool]) -> Iterator[str]:
    for part, one, runs_now in zip(parts, held, needed, strict=True):
        if not runs_now:
            trials = count(sum(row.trials for row in one.rows), "trial")
            yield f"{part.name}: {trials} from the record, {_listed([row.id for row in one.rows])}"


def _to_make(db: Database, asked: Asked, plans: Sequence[RunPlan]) -> Iterator[str]:
    """What is run now, and what that will take."""
    if not plans:
        return
    of_one = cost(plans[0].suite)
    names = " and ".join(planned.backend.name for planned in plans)
    turns = ", in turns" if len(plans) > 1 else ""
    each = f"{count(of_one.questions, 'case')} × {count(asked.trials, 'trial')}"
    found = [_estimated(db, asked, planned, of_one) for planned in plans]
    minutes, money = (_sum([one[place] for one in found]) for place in (0, 1))
    about = [
        f"about {minutes:.1f} minutes" if minutes is not None else "time not measured yet",
        f"about ${money:.2f}" if money is not None else "money not measured yet",
    ]
    yield f"now runs{turns}: {asked.suite} on {names}, {each}, {', '.join(about)}"


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _estimated(
    db: Database, asked: Asked, planned: RunPlan, of_one: Cost
) -> tuple[float | None, float | None]:
    """Minutes and USD of all trials, by the newest night of the backend; of another release, by that of the
    one in use."""
    measured = {row.backend: row for row in queries.last_costs(db)}
    row = measured.get(planned.backend.name.partition("@")[0])
    if row is None:
        return None, None
    once = estimate(of_one, row)
    return _times(asked.trials, once.minutes), _times(asked.trials, once.money)


def _times(trials: int, value: float | None) -> float | None:
    return None if value is None else trials * value
