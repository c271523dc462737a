"""The two sides of a comparison, found: which runs the record has of each, and how it is asked now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from collectors.arguments import USAGE
from collectors.configured import plan, release_config, suite_names
from collectors.plans import RunPlan, compared
from store import queries
from store.comparisons import TRIALS
from store.database import Database
from store.errors import StoreError
from store.queries import NothingToCompare, RunRow
from store.settings import Settings
from store.sides import Side, side
from store.stats.margins import MARGIN


class NotTwoSides(StoreError):
    """What was named are not two sides of one suite: a mistake of whoever asks."""

    code = USAGE


class Asked(NamedTuple):
    """`margin`: the largest acceptable loss of the pass rate, a share; `trials` of each case that a live side
    takes; `no_run`: the record alone is to answer; `with_texts`: with what came back."""

    suite: str
    a: Side
    b: Side
    margin: float = MARGIN
    trials: int = TRIALS
    no_run: bool = False
    with_texts: bool = False

    @property
    def command(self) -> str:
        """What asks this, and goes on with it when it was interrupted."""
        sides = " ".join(shlex.quote(one.text) for one in (self.a, self.b))
        margin = "" if self.margin == MARGIN else f" --margin {self.margin:g}"
        trials = "" if self.trials == TRIALS else f" --trials {self.trials}"
        return f"memtrend compare {sides} --suite {shlex.quote(self.suite)}{margin}{trials}"


class Part(NamedTuple):
    """A side as it was found. `rows`, oldest first: the runs that the record has of it, or `missing` says why
    there are none; `plan`: how it is asked now, None of what is past or cannot be asked."""

    name: str
    rows: tuple[RunRow, ...]
    missing: str = ""
    plan: RunPlan | None = None

    @property
    def run_ids(self) -> tuple[int, ...]:
        return tuple(row.id for row in self.rows)


def around(
    db: Database, suite: str, backend: str | None, before: str | None, after: str | None
) -> tuple[Side, Side]:
    """The sides before and after marks, days or runs; what is given once is meant for both. Without a
    backend, the one on which the suite has been run. Raises `BadSide`, `NotTwoSides`."""
    given = [what for what in (before, after) if what is not None]
    if len(given) == 1 and _are_runs(given[0]):
        raise NotTwoSides(f"{given[0]} names runs: name the other side too, by --before and --after")
    name = backend or _only_backend(db, suite)
    return _around(name, "<", given[0]), _around(name, ">", given[-1])


def _around(backend: str, sign: str, what: str) -> Side:
    if _are_runs(what):
        return side(what)
    relation = "before" if sign == "<" else "after"
    return side(f"{backend}{sign}{what}")._replace(text=f"{backend} {relation} {what}")


def _are_runs(what: str) -> bool:
    return bool(what.strip()) and bool(side(what).run_ids)


def _only_backend(db: Database, suite: str) -> str:
    known = sorted({row.backend for row in queries.overview(db) if row.suite == suite and row.last_whole})
    if len(known) != 1:
        several = f"has been run on {', '.join(known)}" if known else "has no whole run yet"
        raise NotTwoSides(f"{suite} {several}: name the backend, memtrend compare BACKEND --before WHAT")
    return known[0]


def ambiguous(db: Database, asked: Asked) -> Iterator[str]:
    """What to say of marks that several have the text of."""
    marks = queries.marks(db)
    for what in sorted({asked.a.what, asked.b.what} - {""}):
        alike = [mark for mark in marks if mark.text == what]
        if len(alike) > 1:
            newest = f"{alike[-1].at:%Y-%m-%d %H:%M}"
            yield f"{len(alike)} marks say {what!r}: the newest is meant, of {newest} UTC"


def find(db: Database, settings: Settings, asked: Asked) -> tuple[Part, Part]:
    """Raises `NothingToCompare` where the record has no runs of a side that is not asked now, `NotTwoSides`,
    `SettingsError` for a release that cannot be run, `SuiteError`."""
    a = _part(db, settings, asked, asked.a, asked.b)
    b = _part(db, settings, asked, asked.b, asked.a)
    if a.plan and b.plan and a.plan.backend.name == b.plan.backend.name:
        name = a.plan.backend.name
        raise NotTwoSides(f"both sides are {name}: name another backend, a release, a day or runs")
    for part in (a, b):
        if part.missing and (part.plan is None or asked.no_run):
            raise NothingToCompare(part.missing)
    return a, b


def _part(db: Database, settings: Settings, asked: Asked, one: Side, other: Side) -> Part:
    found = _recorded(db, asked, one)
    if one.backend not in settings.backends or asked.suite not in suite_names(settings):
        return found
    planned = plan(settings, asked.suite, one.backend, trials=asked.trials)
    if not one.is_past:
        return found._replace(plan=compared(planned, other.text, asked.command))
    if not _is_release(db, one) or any(row.backend == one.backend for row in found.rows):
        return found
    if settings.backends[one.backend].package is None:
        if found.rows:
            return found
        return found._replace(missing=f"{found.missing}; a release is run where the backend has a package")
    release = release_config(settings, one.backend, one.what)
    earlier = _recorded(db, asked, Side(one.text, release.name))
    return earlier._replace(plan=compared(planned, other.text, asked.command, release))


def _recorded(db: Database, asked: Asked, one: Side) -> Part:
    try:
        return Part(one.text, tuple(queries.side_runs(db, asked.suite, one)))
    except queries.UnknownMark:
        raise
    except NothingToCompare as error:
        return Part(one.text, (), str(error))


def _is_release(db: Database, one: Side) -> bool:
    """Whether it can be one: neither a day nor a mark."""
    dated = one.since is not None or any(mark.text == one.what for mark in queries.marks(db))
    return one.relation == "at" and not dated
