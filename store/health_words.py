"""What is said of the monitor itself: whether it lives, keeps its schedules, and follows its configuration.
Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from store import words

if TYPE_CHECKING:
    from store.queries import FireRow, HeartbeatRow

STATES = {
    "due": "due",
    "done": "done",
    "late": "late",
    "skipped": "skipped",
    "invalid": "does not count",
    "missed": "missed",
}
"""The states of a fire in words, the worse the later."""

COLLECTOR = "collector"
"""The name of its heartbeat, of its lease, and of the source of its events."""

DEAD_MAN = "dead-man"
"""The name of the heartbeat that says when the dead-man switch was last answered."""

HEARTBEAT_LIMIT_S = 60.0
"""A collector that has not said for so long that it lives counts as dead: it says so every 5 s."""

WEEK = timedelta(days=7)
"""How far back a missed run is news for a title: what is older the calendar shows."""

BROKEN = "the configuration was changed but is broken"
IN_FORCE = "the changed configuration is in force"
"""How the events of a collector begin that read its configuration again."""

FORMER = "The configuration was changed and is broken, so the former stays in force"
"""The same as a title."""


class Pulse(NamedTuple):
    """What the title of Health is made of. `age`: seconds since the collector last said that it lives, None
    for never; `alive`: whether that is recent; `scheduled`: whether anything is; `missed`: fire times of the
    last week without a run, in the viewer's zone; `broken`: of `closed` runs of the last 24 hours, those that
    do not count; `configuration`: whether what is configured now could not be taken over;
    `unwritable`: whether nothing can be recorded; `indexes`: what is wrong with legs of indexes, as `leg_off`
    tells it."""

    age: float | None
    alive: bool
    scheduled: bool
    missed: Sequence[datetime] = ()
    broken: int = 0
    closed: int = 0
    configuration: bool = False
    unwritable: bool = False
    indexes: Sequence[str] = ()


def silence(beats: Iterable[HeartbeatRow], now: datetime) -> float | None:
    """Seconds since the collector last said that it lives; None when it never did. What it said in the
    future was before a clock was set back, and as far from now as that: whoever lives says so again."""
    ages = [age(beat, now) for beat in beats if beat.name == COLLECTOR]
    return min(ages) if ages else None


def age(beat: HeartbeatRow, now: datetime) -> float:
    """Seconds between a heartbeat and now, never negative."""
    return abs((now - beat.at).total_seconds())


def is_alive(silent: float | None) -> TypeGuard[float]:
    """Whether a collector that was silent for so many seconds counts as alive."""
    return silent is not None and silent <= HEARTBEAT_LIMIT_S


def health_title(pulse: Pulse, now: datetime) -> str:
    """What is wrong with the monitor, the worst first; else that all ran."""
    wrong = [
        *_unwritable(pulse),
        *_dead(pulse),
        *_missed(pulse.missed, now),
        *_broken(pulse),
        *_configuration(pulse),
        *_indexes(pulse),
    ]
    if wrong:
        return "; ".join([wrong[0], *(text[0].lower() + text[1:] for text in wrong[1:])])
    assert pulse.age is not None
    kept = "Everything ran" if pulse.scheduled else "Nothing is scheduled"
    return f"{kept}; the last collector heartbeat is {words.duration(pulse.age)} old"


def _unwritable(pulse: Pulse) -> list[str]:
    return ["The record cannot be written: nothing is kept"] if pulse.unwritable else []


def _dead(pulse: Pulse) -> list[str]:
    return [] if pulse.alive else ["No collector is running: nothing will be measured"]


def _missed(missed: Sequence[datetime], now: datetime) -> list[str]:
    if not missed:
        return []
    runs = "scheduled run was" if len(missed) == 1 else "scheduled runs were"
    return [
        f"{words.spelled(len(missed)).capitalize()} {runs} missed {_since(min(missed), now, len(missed))}"
    ]


def _since(first: datetime, now: datetime, n: int) -> str:
    """ "since Friday", "today", "yesterday": a weekday only while it can mean one day alone."""
    days = (now.date() - first.date()).days
    word = "on" if n == 1 else "since"
    if days < 2:
        day = ("today", "yesterday")[max(days, 0)]
        return day if n == 1 or not days else f"since {day}"
    return f"{word} {first:%A}" if days < WEEK.days else f"{word} {words.day(first, now)}"


def _broken(pulse: Pulse) -> list[str]:
    if not pulse.broken:
        return []
    verb = "does" if pulse.broken == 1 else "do"
    return [f"{pulse.broken} of {words.count(pulse.closed, 'run')} of the last 24 hours {verb} not count"]


def _indexes(pulse: Pulse) -> list[str]:
    """The first by name: a title has no room for all, and the table below tells them."""
    if not pulse.indexes:
        return []
    more = len(pulse.indexes) - 1
    return [
        pulse.indexes[0]
        + (f", and {words.count(more, 'other index', 'other indexes')} likewise" if more else "")
    ]


def leg_off(backend: str, leg: str, stands: str) -> str:
    """A leg that does not hold what it should. `stands`: as `legs` says it."""
    if stands == "differ":
        return f"The indexes of {backend} differ"
    n, _, way = stands.partition(" ")
    return f"The {leg} index of {backend} holds {n} {'memory' if n == '1' else 'memories'} {way}"


def _configuration(pulse: Pulse) -> list[str]:
    return [FORMER] if pulse.configuration else []


def refused_configuration(told: Iterable[tuple[datetime, str]], started: datetime | None) -> str:
    """What a collector says is wrong with a configuration that it did not take over, "" while it follows it.
    `told`: its events, newest first; `started`: since when it runs, since it starts with none that is
    broken."""
    for at, message in told:
        if message.startswith(IN_FORCE) or (started and at < started):
            return ""
        if message.startswith(BROKEN):
            return message
    return ""


def settings_title(file: str, origins: Iterable[str], default: str, writes: bool) -> str:
    """Where what is in force comes from, and what these pages let people do. `origins` of every key:
    the `file`, with what follows, a variable, or `default`."""
    found = Counter(
        "file" if file and one.startswith(file) else "variables" for one in origins if one != default
    )
    told = [f"{file} sets {words.count(found['file'], 'key')}"] if found["file"] else []
    told += (
        [f"environment variables set {words.count(found['variables'], 'key')}"] if found["variables"] else []
    )
    source = words.listed(told) or "every key has its default"
    source = source if found["file"] else source.capitalize()
    may = "may start runs and act on alerts" if writes else "can only read"
    return f"{source}; who opens these pages {may}"


def begun(late: timedelta) -> str:
    """Why a fire was late."""
    return f"begun {words.duration(late.total_seconds())} after its time"


def taken(waited: float) -> str:
    """How soon a collector takes what is asked of it."""
    return "in under a second" if waited < 1 else f"after {words.duration(waited)}"


def _late(seconds: float) -> str:
    return "under a second" if seconds < 1 else words.duration(seconds)


def punctuality(fires: Iterable[FireRow]) -> str | None:
    """How long after they were due fires of the last day began; None where none did."""
    late = [(fire.started_at - fire.due).total_seconds() for fire in fires if fire.started_at]
    if not late:
        return None
    usual, latest = (_late(seconds) for seconds in (median(late), max(late)))
    return f"those of the last day began {usual} late" + (f", the latest {latest}" if latest != usual else "")


def may_write(allowed: bool | None, host: str, loopback: bool) -> str:
    """Why pages may ask for runs, or not. `allowed`: what the configuration says, None for nothing."""
    if allowed is not None:
        return f"[dashboard] writes = {str(allowed).lower()}"
    return (
        f"{host or 'every address'} is this machine alone"
        if loopback
        else f"{host or 'every address'} can be reached from elsewhere; [dashboard] writes = true allows it"
    )


def size(n: int) -> str:
    """ "812 kB", "1.31 GB"."""
    value, unit = float(n), "B"
    for bigger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, bigger
    digits = 0 if unit in ("B", "kB") or value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


FINE = ("as recorded", "agree", "only leg")
"""What `legs` says of a leg with which nothing is wrong."""


def legs(counted: Sequence[int], expected: int | None, count: int) -> str:
    """How a leg stands: against what it should hold, else against the other legs of its index."""
    if expected is not None:
        off = count - expected
        return "as recorded" if not off else f"{abs(off):,} {'too many' if off > 0 else 'too few'}"
    if len(counted) == 1:
        return "only leg"
    return "agree" if len(set(counted)) == 1 else "differ"
