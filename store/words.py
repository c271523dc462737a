"""Numbers and findings as words, so that pages, messages and reports say the same. Pure.

Every page's title is its finding. Text that comes back holds names as they are: who shows it escapes it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from store.metrics import METRICS

NO_BASELINE = "No baseline yet"

PROBLEMS = {"invalid": "Invalid", "void": "Void", "interrupted": "Interrupted"}
"""States in which the instrument is broken: such a run says nothing about the backend."""

DRIFTS = frozenset({"anchor_drift"})
"""Metrics that are differences: told in points, with their sign."""
_ORIGINS = {"starter": "synthetic starter", "own": "your cases", "published": "published"}
_LABELS = {
    "returned_n": "hits returned",
    "returned_tokens": "tokens returned",
    "first_try_errors": "first-try errors",
    "ingest_tokens": "tokens spent on a memory",
    "money": "money spent on a scenario",
    "pass": "pass rate",
    "recall_ms": "recall time",
    "plant_ms": "planting time",
    "settle_ms": "settling time",
}
MANY_PROBLEMS = 100
"""Beyond which nobody counts."""
SMALLEST = 0.01
"""Times, counts and tokens below are noise of the clock or of the mean: no one compares them."""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
FLAKY_FLIPS = 3


# Numbers ------------------------------------------------------------------------


def amount(metric: str, value: float) -> str:
    """A metric's value with its unit: "91.1 %", "312 ms", "$0.09", "4.2", and of a drift "−1.7 points"."""
    if metric in DRIFTS:
        return difference(metric, 0.0, value)
    if METRICS[metric].unit == "USD":
        return f"${value:,.4g}"
    return bare(metric, value) + unit(metric)


def bare(metric: str, value: float) -> str:
    """The value as a number alone, shares in per cent: "91.1", "312", "4.2", "<0.01"."""
    if METRICS[metric].unit == "share":
        return _minus(f"{value * 100:.1f}")
    if METRICS[metric].unit != "USD" and 0 < value < SMALLEST:
        return f"<{SMALLEST}"
    return _minus(f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}")


def unit(metric: str) -> str:
    """What stands behind a number: " %", " ms", " points" of a drift, "" behind a count."""
    if METRICS[metric].unit == "share":
        return " points" if metric in DRIFTS else " %"
    return {"ms": " ms", "tokens": " tokens", "USD": " USD"}.get(METRICS[metric].unit, "")


def _minus(number: str) -> str:
    return number.replace("-", "−", 1) if number.startswith("-") else number


def interval(metric: str, low: float | None, high: float | None) -> str:
    """ "86.0 to 94.5", in the unit of `amount`; "" where there is none."""
    if low is None or high is None:
        return ""
    return f"{bare(metric, low)} to {bare(metric, high)}"


def difference(metric: str, old: float, new: float) -> str:
    """ "+1.7 points", "−31 ms", "±0 points": the plain difference, which is no verdict."""
    behind = " points" if METRICS[metric].unit == "share" else unit(metric)
    size = _size(metric, old, new)
    if float(size.replace(",", "")) == 0:
        return f"±0{behind}"
    return f"{'−' if new < old else '+'}{size}{behind}"


def _size(metric: str, old: float, new: float) -> str:
    """No finer than the values that it lies between are shown."""
    if METRICS[metric].unit == "share":
        return f"{abs(new - old) * 100:.1f}"
    largest = max(abs(old), abs(new))
    if METRICS[metric].unit != "USD" and largest < SMALLEST:
        return "0"
    decimals = min(max(2 - math.floor(math.log10(largest)), 0), 6) if largest else 0
    return f"{abs(new - old):,.{decimals}f}"


def removed(taken: Mapping[str, str]) -> str:
    """What retention took from a run: {"details": "90d"}; "" where it took nothing."""
    if "results" in taken:
        return f"results and texts were removed by retention after {_spaced(taken['results'])}"
    return f"texts were removed by retention after {_spaced(taken['details'])}" if taken else ""


def _spaced(duration: str) -> str:
    return f"{duration[:-1]} {duration[-1]}"


def count(n: int, one: str, many: str = "") -> str:
    """ "1 case", "3 cases"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def spelled(n: int) -> str:
    """Small numbers as words, for sentences."""
    return _NUMBERS[n] if 0 <= n < len(_NUMBERS) else f"{n:,}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def duration(seconds: float) -> str:
    """ "0.4 s", "41 s", "8 min", "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def day(at: datetime, now: datetime) -> str:
    """ "30 Nov", with the year when it is another than that of `now`."""
    return f"{at.day} {at:%b}" if at.year == now.year else f"{at.day} {at:%b} {at.year}"


def moment(at: datetime, now: datetime) -> str:
    """ "30 Nov, 03:47", in the zone of `at`."""
    return f"{day(at, now)}, {at:%H:%M}"


def first_day(first: datetime, last: datetime, now: datetime, days: int) -> str:
    """Why a chart of `days` shows hours: "" once its runs (of one zone) reach over more than a day."""
    if last - first > timedelta(days=1):
        return ""
    when = "today" if first.date() == now.date() else f"on {day(first, now)}"
    reach = f"at {first:%H:%M}" if last - first < timedelta(minutes=1) else f"{first:%H:%M} to {last:%H:%M}"
    return f"First runs {when}, {reach}: the axis grows with the next ones, up to {days} days"


# Names ------------------------------------------------------------------------


def label(metric: str) -> str:
    """What a metric is called on a page."""
    return _LABELS.get(metric, metric.replace("_", " "))


def direction(metric: str) -> str:
    """ "lower is better" where that surprises, else ""."""
    return "lower is better" if METRICS[metric].better == "lower" else ""


def origin(value: str) -> str:
    """Where a suite's cases come from."""
    return _ORIGINS.get(value, value)


def status(value: str) -> str:
    """A run's state. A whole run gets its verdict's word, and without a baseline there is none."""
    return {"whole": NO_BASELINE, "running": "Running", **PROBLEMS}.get(value, value)


def trigger(value: str) -> str:
    """What started a run: "second look at 931" of one that asked once more, "command line", else its name."""
    kind, _, about = value.rpartition(":")
    if about.isdecimal() and kind.partition(":")[0] == "confirm":
        return f"second look at {about}"
    return "command line" if value == "cli" else value


_PARTS = {
    "": "whole suite",
    "@confirm": "second look",
    "@calibration": "calibration",
    "@compare": "comparison",
}


def part(subset: str) -> str:
    """Which part of a suite was run, or what for."""
    if subset.startswith("@sample "):
        size = subset.split()[1]
        return f"{size} of its cases" if size.endswith("%") else f"{size} cases"
    return _PARTS.get(subset, subset)


# Findings ------------------------------------------------------------------------


class Standing(NamedTuple):
    """A backend's newest value."""

    backend: str
    value: float


def trends_title(
    suite: str,
    metric: str,
    standings: Sequence[Standing],
    broken: Mapping[str, int],
    news: Sequence[str] = (),
) -> str:
    """What a chart shows: cases that broke, and other `news` of its backends, else who stands where. `broken`
    counts, by backend, the cases that had passed and fail now."""
    if not standings:
        return f"No whole run of {suite} in this range"
    counts = Counter(broken).most_common(3)
    told = [*([_broken(counts)] if any(n for _, n in counts) else []), *news]
    if metric == "pass" and told:
        return "; ".join(told)
    return f"{label(metric).capitalize()} on {suite}: {spread(metric, standings)}"


def spread(metric: str, standings: Sequence[Standing]) -> str:
    """ "best hybrid 95.6 %, worst dense 82.2 %": where backends stand, which is no verdict."""
    if not standings:
        return "no data"
    sign = -1 if METRICS[metric].better == "higher" else 1
    ranked = sorted(standings, key=lambda row: sign * row.value)
    best, worst = (f"{row.backend} {amount(metric, row.value)}" for row in (ranked[0], ranked[-1]))
    if len(ranked) == 1:
        return best
    if ranked[0].value == ranked[-1].value:
        return f"all {amount(metric, ranked[0].value)}"
    return f"best {best}, worst {worst}"


def _broken(counts: Sequence[tuple[str, int]]) -> str:
    (backend, n), *others = [(backend, n) for backend, n in counts if n]
    first = f"{backend} fails {count(n, 'case')} that it had passed"
    return "; ".join([first, *(f"{backend} fails {n}" for backend, n in others)])


def runs_title(recent: Mapping[str, int], running: int, newest: str | None, worse: int = 0) -> str:
    """`recent` counts the closed runs of the last 24 hours by state, `worse` those of them whose verdict is
    that; `newest` is the date of the newest run."""
    if newest is None and not running:
        return "No run yet"
    closed, whole = sum(recent.values()), recent.get("whole", 0)
    under_way = f"{spelled(running)} {'is' if running == 1 else 'are'} running" if running else ""
    if closed:
        counted = f"All {closed} runs" if whole == closed > 1 else f"{whole} of {count(closed, 'run')}"
        said = f"{counted} of the last 24 hours {'counts' if whole == 1 else 'count'}"
        found = f"{spelled(worse)} found something worse" if worse else ""
        return "; ".join(filter(None, [said, found, under_way]))
    return under_way.capitalize() if under_way else f"No run in the last 24 hours; the newest is of {newest}"


def problems_title(n: int) -> str:
    """ "2 problems in the last 24 hours": what went wrong beside the runs."""
    found = f"more than {MANY_PROBLEMS} problems" if n > MANY_PROBLEMS else count(n, "problem")
    return f"{found.capitalize()} in the last 24 hours"


class RunFinding(NamedTuple):
    """What a run's title is made of. Counts are of cases; `lost` and `gained` are against run `previous`, and
    not told where there is a `verdict`. `compared`: whether the cases of both runs are still there."""

    status: str
    passed: int = 0
    judged: int = 0
    done: int = 0
    total: int = 0
    errors: int = 0
    previous: int | None = None
    lost: int = 0
    gained: int = 0
    verdict: str = ""
    compared: bool = True


def run_title(run: RunFinding) -> str:
    """What a run came to."""
    if run.status == "running":
        return f"Running: {run.done} of {count(run.total, 'case')} are in"
    if run.status == "interrupted":
        return f"Interrupted after {run.done} of {count(run.total, 'case')}"
    if run.status == "invalid":
        return f"Invalid: {run.errors} of {count(run.done, 'answer')} were errors, so the run does not count"
    if run.status == "void":
        return "Void: the backend was not asked, so the run does not count"
    return f"{run.passed} of {count(run.judged, 'case')} passed{_against(run)}"


def _against(run: RunFinding) -> str:
    if run.verdict:
        return f": {run.verdict}"
    if not run.compared:
        return ""
    if run.previous is None:
        return " in the first whole run of this series"
    if not (run.lost or run.gained):
        return f", the same as in run {run.previous}"
    changes = [f"{n} {word}" for n, word in ((run.lost, "lost"), (run.gained, "gained")) if n]
    return f"; {listed(changes)} since run {run.previous}"


def run_reason(state: str, reason: str | None, again: str = "memtrend run --resume") -> str:
    """Why a run counts nowhere, and what that means, in two sentences. `again`: the command that finishes
    one that was interrupted."""
    meaning = {
        "invalid": "Quality is unknown; it is not worse.",
        "void": "The adapter failed its checks before the first question. Quality is unknown.",
        "interrupted": f"The run stopped before its end. `{again}` finishes it.",
    }.get(state, "")
    return " ".join(filter(None, [f"{reason.rstrip('.')}." if reason else "", meaning]))


class Streak(NamedTuple):
    """How a case fares on a backend. `kind` is one of passing, failing, flaky, never, unasked, inapplicable;
    `words` stand beside its row, `verb` in a sentence after the backend's name."""

    kind: str
    words: str
    verb: str


INAPPLICABLE = Streak("inapplicable", "not applicable", "cannot be asked this")
"""The backend lacks a capability without which the question cannot be judged."""
ERRORED = Streak("errored", "could not answer (error)", "could not answer (error)")
"""It was asked, and each time there was an error where an answer should have been."""


def streak(results: Sequence[tuple[datetime, bool]], now: datetime) -> Streak:
    """The history of a case on a backend, oldest first, as words: of the runs in which it could be judged."""
    outcomes = [passed for _, passed in results]
    runs, passes = len(outcomes), sum(outcomes)
    if not runs:
        return Streak("unasked", "not asked", "has not been asked this yet")
    if not passes:
        return Streak("never", "never passed", "has never passed it")
    if is_flaky(outcomes):
        return Streak(
            "flaky", f"flaky, passed {passes} of {runs}", f"passes it on and off, {passes} of {runs} times"
        )
    since = day(_since(results), now)
    if not outcomes[-1] and flips(outcomes) > 1 and passes < runs / 10:
        seldom = f"passed {passes} of {runs}"
        return Streak("failing", f"fails, {seldom}", f"fails it, having {seldom} times")
    if not outcomes[-1]:
        return Streak("failing", f"failing since {since}", f"fails it since {since}")
    return Streak("passing", _passing(outcomes, since), "passes it")


def _passing(outcomes: Sequence[bool], since: str) -> str:
    failures = len(outcomes) - sum(outcomes)
    if not failures:
        return "passes"
    return (
        f"passes since {since}" if flips(outcomes) == 1 else f"passes, failed {failures} of {len(outcomes)}"
    )


def is_flaky(outcomes: Sequence[bool]) -> bool:
    """Whether a case turns to and fro: at least three times, and neither seldom nor nearly always passed."""
    return flips(outcomes) >= FLAKY_FLIPS and 0.1 <= sum(outcomes) / len(outcomes) <= 0.9


def flips(outcomes: Sequence[bool]) -> int:
    return sum(before != after for before, after in pairwise(outcomes))


def _since(results: Sequence[tuple[datetime, bool]]) -> datetime:
    """When the outcome that holds now began."""
    last = results[-1][1]
    began = results[-1][0]
    for at, passed in reversed(results):
        if passed != last:
            break
        began = at
    return began


_UNJUDGED = ("unasked", "inapplicable", "errored")


def case_title(backend: str, own: Streak, failure: str | None, others: Sequence[Streak]) -> str:
    """How the case fares on the backend looked at, why, and whether the others do better."""
    why = f": {failure}" if failure and own.kind in ("failing", "never") else ""
    asked = [other.kind == "passing" for other in others if other.kind not in _UNJUDGED]
    elsewhere = f"; {_elsewhere(own.kind, asked)}" if asked and own.kind not in ("flaky", *_UNJUDGED) else ""
    return f"{backend} {own.verb}{why}{elsewhere}"


def _elsewhere(kind: str, passing: Sequence[bool]) -> str:
    if all(passing):
        return "so does every other backend" if kind == "passing" else "every other backend passes it"
    if not any(passing):
        return "no other backend does" if kind == "passing" else "no other backend passes it"
    return f"{sum(passing)} of {len(passing)} others {'passes' if sum(passing) == 1 else 'pass'}"


def suite_title(name: str, cases: int, tags: int, runs: int, flaky: int, errors: int = 0) -> str:
    """What a suite can be trusted for, as far as it is known. `errors`: that lint found in its questions."""
    asks = f"{name} asks {count(cases, 'case')}" + (f" over {count(tags, 'tag')}" if tags else "")
    wrong = f"; lint finds {count(errors, 'error')} in them" if errors else ""
    if not runs:
        return f"{asks}; no whole run has asked them yet{wrong}"
    mixed = f"{'none' if not flaky else spelled(flaky)} of them {'is' if flaky < 2 else 'are'} flaky"
    return f"{asks}; {mixed}{wrong}"


def moved(added: int, removed: int, changed: int) -> str:
    """ "2 new, 1 changed": what a version did to the cases of the one before; "the same" where nothing."""
    told = ((added, "new"), (removed, "gone"), (changed, "changed"))
    return ", ".join(f"{n} {word}" for n, word in told if n) or "the same"


def telling(telling: int | None, asked: int | None) -> str:
    """ "88 % of 231 cases tell a memory from both floors"; nothing where the floors were not asked."""
    if not asked or telling is None:
        return ""
    return f"{telling / asked * 100:.0f} % of {count(asked, 'case')} tell a memory from both floors"


def on_trial(cases: int, runs: int) -> str:
    """ "3 new cases are on trial: they gate nothing before 5 equal runs in a row"."""
    who = f"{count(cases, 'new case')} {'is' if cases == 1 else 'are'} on trial"
    return f"{who}: {'it gates' if cases == 1 else 'they gate'} nothing before {runs} equal runs in a row."


def ago(at: datetime, now: datetime) -> str:
    """ "12 s ago", "3 h 5 min ago"; days beyond two of them."""
    age = now - at
    return (
        f"{age.days} days ago" if age >= timedelta(days=2) else f"{duration(max(age.total_seconds(), 0))} ago"
    )


def environment_news(changes: Sequence[tuple[str, object, object]]) -> str:
    """ "mem0ai 2.2.1, pydantic 2.14.2, and 3 more": what is new, shortest names first to read."""
    told = [f"{name.removeprefix('packages.')} {'gone' if new is None else new}" for name, _, new in changes]
    return ", ".join(told[:3] + ([f"and {len(told) - 3} more"] if len(told) > 3 else []))
