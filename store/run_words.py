"""What a run came to, as sentences and rows, so that page and report say the same. Pure.

Text that comes back holds names as they are: who shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from store import changes, comparison_words, verdict_titles, verdict_words, words
from store.metrics import METRICS
from store.queries.reporting import RunReport
from store.queries.results import CaseRow
from store.queries.runs import RunRow
from store.queries.said import VerdictRow
from store.queries.series import TrendPoint
from store.queries.sides import COMPARED


class MetricLine(NamedTuple):
    """A metric of a run as it is read: `value` with its unit, `interval` in it; `change` since the run
    before, "" where there is none."""

    name: str
    value: str
    interval: str
    n: int
    change: str
    better: str


def finding(
    run: RunRow,
    before: RunRow | None,
    cases: Sequence[CaseRow],
    old: Mapping[str, CaseRow],
    said: VerdictRow | None,
) -> words.RunFinding:
    """What the run's title is made of. `old`: the cases of the run before, by name."""
    judged = [row for row in cases if row.passed is not None]
    moved = [(old[row.case].passed, row.passed) for row in judged if row.case in old]
    return words.RunFinding(
        run.status, *_passes(run, judged), run.cases_done, run.cases_total,
        run.errors, before and before.id, moved.count((True, False)), moved.count((False, True)),
        verdict_titles.run_phrase(said.content) if said else "", bool(judged and (old or not before)),
    )  # fmt: skip


def _passes(run: RunRow, judged: Sequence[CaseRow]) -> tuple[int, int]:
    """Cases that passed, and how many that is of; of a run whose results were removed, by its figures."""
    rolled = run.metrics.get("pass")
    if rolled and not judged:
        return round(rolled.mean * rolled.n), rolled.n
    return sum(bool(row.passed) for row in judged), len(judged)


def title(r: RunReport) -> str:
    """ "mem0 on golden: 27 of 30 cases passed: worse, 3 lost against 10 nights"."""
    said = words.run_title(finding(r.run, r.before, r.cases, r.old, r.said))
    return f"{r.run.backend} on {r.run.suite}: {said}"


def again(run: RunRow) -> str:
    """The command that goes on with a run that was interrupted."""
    return comparison_words.again(run) if run.subset == COMPARED else "memtrend run --resume"


def reason(run: RunRow) -> str:
    """Why it counts nowhere, and what that means."""
    return words.run_reason(run.status, run.reason, again(run))


def changed(r: RunReport) -> str:
    """Did it change? In a sentence, with why that is said."""
    if r.run.status in words.PROBLEMS:
        return reason(r.run)
    if r.run.subset == COMPARED:
        return f"This run is a side of a comparison, which says what came of it: {again(r.run)}"
    if r.said is None:
        return f"Nothing was said of this run yet; memtrend verdict {r.run.id} judges it."
    return f"{verdict_words.badge(r.said.content).text}. {verdict_words.evidence(r.said.content)}"


def how_much(r: RunReport) -> str:
    """How much worse, or better, for questions like these? With the interval."""
    found = verdict_words.how_much(r.said.content) if r.said else ""
    return f"{found}." if found else "That cannot be told: there is nothing to hold it against."


def beside(r: RunReport) -> list[str]:
    """What else to know of the verdict: how sure it is, whose doing, and what could not have been seen."""
    if r.said is None:
        return []
    said = r.said.content
    told = (verdict_words.how_sure(said), verdict_words.control(said), *verdict_words.moved(said))
    against = f"Held against {verdict_words.held_against(said)}."
    return [line for line in (*told, verdict_words.blind_spot(said), against) if line]


def metric_lines(r: RunReport) -> list[MetricLine]:
    """In the order of the metrics; those that the run has."""
    return [_metric_line(r, name) for name in METRICS if name in r.run.metrics]


def _metric_line(r: RunReport, name: str) -> MetricLine:
    now, old = r.run.metrics[name], r.before.metrics.get(name) if r.before else None
    return MetricLine(
        words.label(name),
        words.amount(name, now.mean),
        words.interval(name, now.low, now.high),
        now.n,
        words.difference(name, old.mean, now.mean) if old else "",
        METRICS[name].better,
    )


def turned(r: RunReport) -> tuple[list[CaseRow], list[CaseRow]]:
    """Lost and gained cases: those that the verdict names; where nothing was said, since the run before."""
    if r.said:
        return _named(r, r.said.content["lost"]), _named(r, r.said.content["gained"])
    moved = [row for row in r.cases if row.passed is not None and row.case in r.old]
    lost, gained = (
        [row for row in moved if row.passed is now and r.old[row.case].passed is (not now)]
        for now in (False, True)
    )
    return lost, gained


def _named(r: RunReport, names: Sequence[str]) -> list[CaseRow]:
    return [row for row in r.cases if row.case in set(names)]


def suspects(r: RunReport) -> list[str]:
    """The likeliest first, as sentences."""
    if r.at_turn is None:
        return []
    harmless = "; it had changed before, without effect"
    return [
        f"{changes.sentence(one)} ({one.kind}{harmless if one.moved_before else ''})"
        for one in r.at_turn.changes.suspects
    ]


def facts(r: RunReport) -> list[tuple[str, str]]:
    """What kind of run it was."""
    run, took = r.run, (r.run.finished_at or r.run.started_at) - r.run.started_at
    return [
        ("suite", f"{run.suite}, version {run.suite_version[:8]}, {words.origin(run.origin)}"),
        ("part", words.part(run.subset)),
        ("asked", f"{words.count(run.cases_total, 'answer')} in {words.count(run.trials, 'trial')}"),
        ("errors", str(run.errors)),
        ("took", words.duration(took.total_seconds()) if run.finished_at else "not finished"),
        ("begun by", words.trigger(run.trigger)),
        *((str(key), str(value)) for key, value in run.meta.items()),
    ]


HIDDEN = ("packages", "of_backend")
"""Sections of an environment of which the packages of the backend alone are told."""


def environment(r: RunReport) -> list[tuple[str, str]]:
    """What it ran on: the backend's own packages and what they need, then all that is no package."""
    packages, own = r.ran_on.get("packages", {}), r.ran_on.get("of_backend", {})
    named = [*own, *(name for needs in own.values() for name in needs)]
    rest = {name: value for name, value in r.ran_on.items() if name not in HIDDEN}
    told = changes.differences({}, rest)
    return [
        *((name, str(packages[name])) for name in dict.fromkeys(named) if name in packages),
        *((name, changes.shown(value)) for name, _, value in told if value is not None),
    ]


def tag_lines(r: RunReport) -> list[tuple[str, str, str, int]]:
    """(tag, pass rate, interval, cases), the largest first."""
    rows = sorted(r.tags, key=lambda row: (-row.n, row.tag))
    return [
        (row.tag, words.amount("pass", row.mean), words.interval("pass", row.low, row.high), row.n)
        for row in rows
    ]


def course(points: Sequence[TrendPoint]) -> str:
    """How a pass rate went, for those who do not see its chart."""
    if not points:
        return "no whole run"
    values = [point.mean for point in points]
    ends = [words.amount("pass", value) for value in (values[0], values[-1], min(values), max(values))]
    nights = words.count(len(values), "night")
    return f"pass rate of {nights}: from {ends[0]} to {ends[1]}, lowest {ends[2]}, highest {ends[3]}"
