"""What became of the fires of a month: each held against the record, the runs, and what doctor says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from collectors import doctor
from collectors.configured import configured
from collectors.pairs import scheduled_pairs
from collectors.schedule import upcoming
from store import queries
from store.database import Database
from store.settings import Settings

DAY = timedelta(days=1)
AWAY = {1: timedelta(hours=9), 2: timedelta(hours=26)}
"""On which days the collector is stopped at one in the morning, and for how long. From then on it is one
process whose memory is looked at."""

FLAT_MB = 12.0
"""By so much the collector may grow after a third of its days. A leak of 50 kB a run would be 13 MB in
the 20 days that are left of 30."""


class Sample(NamedTuple):
    """After so many days: what the collector holds, and how large the record is, in MB."""

    day: int
    memory: float
    record: float


class Month(NamedTuple):
    """`expected`: schedule -> how many fires it should have had; `states`: schedule -> state -> fires."""

    days: int
    expected: dict[str, int]
    states: dict[str, Counter[str]]
    missed: list[queries.FireRow]
    runs: int
    samples: list[Sample]
    seconds: float
    problems: list[str]


def account(
    db: Database, now: datetime, start: datetime, days: int, samples: list[Sample], seconds: float
) -> Month:
    """Of the days since `start`, read at the time and in the folder of that world."""
    settings, end = configured(), start + days * DAY
    expected = {
        name: [at for at in upcoming(section, start, days) if at < end - timedelta(hours=1)]
        for name, section in settings.schedules.items()
    }
    fires = [fire for fire in queries.schedule_calendar(db, start, end) if fire.scheduled_for <= end]
    runs = queries.runs(db, limit=None)
    missed = queries.missed(db, now)
    problems = [
        *_unexpected(expected, fires),
        *(problem for fire in fires for problem in _unaccounted(settings, fire, runs)),
        *_unlinked(fires, runs),
        *_disagreements(fires, missed),
        *growth(samples, days),
    ]
    states = {name: Counter(fire.state for fire in fires if fire.schedule == name) for name in expected}
    count = {name: len(times) for name, times in expected.items()}
    return Month(days, count, states, missed, len(runs), samples, seconds, problems)


def _unexpected(expected: dict[str, list[datetime]], fires: Sequence[queries.FireRow]) -> Iterator[str]:
    for name, times in expected.items():
        found = Counter(fire.scheduled_for for fire in fires if fire.schedule == name)
        yield from (f"{name}: no row for {at:%m-%d %H:%M}" for at in times if at not in found)
        yield from (f"{name}: {n} rows for {at:%m-%d %H:%M}" for at, n in found.items() if n > 1)
        late = set(found) - set(times)
        yield from (f"{name}: nobody expected {at:%m-%d %H:%M}" for at in late if times and at <= max(times))


def _unaccounted(settings: Settings, fire: queries.FireRow, runs: Sequence[queries.RunRow]) -> Iterator[str]:
    told = f"{fire.schedule} of {fire.scheduled_for:%m-%d %H:%M}"
    own = {run.id: run for run in runs if run.id in fire.run_ids}
    pairs = len(scheduled_pairs(settings, settings.schedules[fire.schedule]))
    statuses = [run.status for run in own.values()]
    match fire.state:
        case "done" | "late" if len(own) != pairs or set(statuses) != {"whole"}:
            yield f"{told} is {fire.state}, with runs that are {statuses}"
        case "invalid" if not fire.reason or len(own) != pairs:
            yield f"{told} is invalid for {fire.reason}, with runs that are {statuses}"
        case "skipped" | "missed" if own or not fire.reason:
            yield f"{told} is {fire.state} for {fire.reason}, with runs that are {statuses}"
        case "due":
            yield f"{told} is not accounted for"


def _unlinked(fires: Sequence[queries.FireRow], runs: Sequence[queries.RunRow]) -> Iterator[str]:
    """Each run is of one fire, of that which it names itself; but for looks at one of these runs again."""
    of = {run_id: fire for fire in fires for run_id in fire.run_ids}
    if sum(len(fire.run_ids) for fire in fires) != len(of):
        yield "a run stands with two fires"
    for run in runs:
        if run.subset == queries.CONFIRM and queries.looked_at(run.trigger) in of:
            continue
        fire = of.get(run.id)
        at = fire and f"{fire.scheduled_for:%Y-%m-%dT%H:%MZ}"
        if fire is None or (f"schedule:{fire.schedule}", at) != (run.trigger, run.meta["scheduled_for"]):
            yield f"run {run.id} of {run.trigger}, {run.meta}, stands with {fire}"


def _disagreements(fires: Sequence[queries.FireRow], missed: Sequence[queries.FireRow]) -> Iterator[str]:
    """What is missed and not made up for: by the calendar, by the question of that name, and by doctor."""
    ran = {fire.schedule: fire.scheduled_for for fire in fires if fire.started_at}
    never = datetime.min.replace(tzinfo=UTC)
    since = [fire for fire in fires if fire.scheduled_for > ran.get(fire.schedule, never)]
    own = {(fire.schedule, fire.scheduled_for) for fire in since if fire.state == "missed"}
    if own != (asked := {(fire.schedule, fire.scheduled_for) for fire in missed}):
        yield f"missed are {own}, and queries.missed says {asked}"
    bad = {check.name for check in doctor.check_all() if check.name.startswith("schedule ") and not check.ok}
    if bad != (named := {f"schedule {name}" for name, _ in own}):
        yield f"missed are {named}, and doctor says {bad}"


def growth(samples: Sequence[Sample], days: int) -> Iterator[str]:
    """Whether the collector went on growing once it was warm."""
    settled = [sample.memory for sample in samples if sample.day >= warm_up(days)]
    if settled and (grown := settled[-1] - settled[0]) > FLAT_MB:
        yield f"memory is not flat: {grown:.1f} MB more after day {warm_up(days)}, {FLAT_MB:.0f} are allowed"


def warm_up(days: int) -> int:
    """The day from whose end on memory counts: after a third of them all is loaded that is used. Not before
    the last of `AWAY`, since a new process begins there."""
    return max(days // 3, *AWAY)
