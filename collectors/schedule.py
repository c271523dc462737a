"""When suites run: the schedules of the configuration become fire times.

Pure: what is due is asked of the record, so no clock ticks here. Weekdays are named (`mon`, `sat,sun`,
`mon-fri`): APScheduler counts them from Monday and cron from Sunday, so a digit would mean another day than
the reader thinks. Why no scheduler runs: docs/decisions/0012-schedules.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import chain, islice, pairwise, takewhile
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from store.cron import cron_problem
from store.sections import ScheduleSection, time_of
from store.settings import SettingsError

DAYS_AHEAD = 40
"""How far ahead fire times are written down: what reads them notices a collector that died for a month."""
MOST_AHEAD = 5000
"""Of a schedule of every minute that is three days and a half. Rows for all 40 days would be most of a record
and tell no more of a collector that died."""
EPOCH, END = datetime(1970, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
LONGEST_GAP = timedelta(hours=3)
"""More than any zone puts its clocks on at once: so far back a time may lie that comes only now."""


class ScheduleError(SettingsError):
    """A schedule that cannot be followed. The message says which, what is wrong, and what to write."""


def cron_trigger(cron: str) -> CronTrigger:
    """The trigger of a cron line of five fields, on a wall clock that never changes (the library's own zones
    lose the midnight after one that does); where day of month and weekday are both given, both must hold.
    Raises `ScheduleError` for a line that is malformed, counts weekdays, or never fires."""
    if problem := cron_problem(cron):
        raise ScheduleError(f"cron: {problem}")
    try:
        trigger = CronTrigger.from_crontab(cron, timezone=UTC)
    except ValueError as error:
        raise ScheduleError("cron: a step reaches beyond its field, as */70 would in minutes") from error
    if trigger.get_next_fire_time(None, datetime.now(UTC)) is None:
        raise ScheduleError("cron: it never fires, since no month that it names has that day")
    return trigger


def check_schedules(schedules: Mapping[str, ScheduleSection]) -> None:
    """Raises `ScheduleError` naming the first schedule that cannot be followed."""
    for name, section in schedules.items():
        try:
            _fire_times(section, EPOCH)
        except ScheduleError as error:
            raise ScheduleError(f"schedules.{name}: {error}") from error


def upcoming(section: ScheduleSection, now: datetime, days: int = DAYS_AHEAD) -> list[datetime]:
    """Every fire time after `now` and up to `days` days later, in UTC, ascending, the first `MOST_AHEAD` of
    them; none of a disabled schedule."""
    if not section.enabled:
        return []
    until = now + timedelta(days=days)
    return list(islice(takewhile(lambda time: time <= until, _fire_times(section, now)), MOST_AHEAD))


def next_fire(section: ScheduleSection, now: datetime) -> datetime | None:
    """The first fire time after `now`; None for a disabled schedule."""
    return next(_fire_times(section, now), None) if section.enabled else None


def longest_pause(section: ScheduleSection, now: datetime, fires: int = 9) -> timedelta | None:
    """Between two of the next fires; None where there are not two. On workdays alone, it is a weekend."""
    times = islice(_fire_times(section, now), fires)
    return max((after - before for before, after in pairwise(times)), default=None)


def _fire_times(section: ScheduleSection, now: datetime) -> Iterator[datetime]:
    if section.every is not None:
        return _multiples(time_of(section.every), now)
    assert section.cron is not None, "a schedule has cron or every"
    return _cron_times(cron_trigger(section.cron), ZoneInfo(section.timezone), now)


def _multiples(every: timedelta, now: datetime) -> Iterator[datetime]:
    """Counted from a fixed point and not from a start, so that all collectors mean the same times."""
    time = EPOCH + ((now - EPOCH) // every + 1) * every
    while True:
        yield time
        time += every


def _cron_times(trigger: CronTrigger, zone: ZoneInfo, now: datetime) -> Iterator[datetime]:
    """Each time on the local clock once, in order: what spring leaves out comes later by as much as clocks
    are put on, and so may come after what follows it on the clock, or be one moment with it."""
    near: list[datetime] = []
    last = now
    for newest in chain(_wall_times(trigger, zone, now), [END]):
        heappush(near, newest)
        while near[0] < newest - LONGEST_GAP:  # nothing that is still to come is before it
            if (time := heappop(near)) > last:
                yield (last := time)


def _wall_times(trigger: CronTrigger, zone: ZoneInfo, now: datetime) -> Iterator[datetime]:
    """In the order of the local clock: of an hour that autumn repeats the first pass."""
    wall = (now - LONGEST_GAP).astimezone(zone).replace(tzinfo=UTC)
    while (wall_time := trigger.get_next_fire_time(None, wall)) is not None:
        yield wall_time.replace(tzinfo=zone).astimezone(UTC)
        wall = wall_time + timedelta(microseconds=1)
