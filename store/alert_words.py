"""Alerts as sentences, and the facts that a message is made of, so that pages, channels and commands say the
same. Pure.

Nothing here is a text of a memory. Names of cases, suites and backends are given as they are: who shows them
escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from math import ceil
from typing import Any, NamedTuple
from urllib.parse import urlencode

from store import verdict_words, words
from store.alert_kinds import KINDS
from store.alert_life import MACHINE, Incident, Step
from store.alert_signals import Signal
from store.metrics import METRICS

STATES = {
    "suspicion": "Suspicion",
    "suspected": "Suspected",
    "open": "Open",
    "acknowledged": "Acknowledged",
    "resolved": "Resolved",
    "retracted": "Retracted",
    "intended": "Intended",
    "died": "Came to nothing",
}
ENOUGH_LOST = 0.75
"""Of its trials, a case fails in so many before it counts as lost, as verdicts have it."""
MOST_CASES = 3
"""Lost cases that a message names."""


class Named(NamedTuple):
    """A case with the address of its page, '' where none is known."""

    name: str
    url: str


class Message(NamedTuple):
    """What a channel tells. `key` names the message for good: of two with one key the second is a copy;
    `action` is the step that it is about; `difference` and the other sentences are '' where there is nothing
    to say; `figures`: `old`, `new`, `low`, `high` (pass rates and the interval of their difference, in
    shares), `n`, `trials`, `lost`, `gained`, as far as they are known; `failures`: lost cases by the way in
    which they were lost; `author`: the person who did it; `listed`: the alerts that a digest is of; `texts`:
    memory texts, only for a channel that may have them."""

    key: str
    action: str
    alert_id: int | None
    kind: str
    severity: str
    state: str
    title: str
    evidence: str
    difference: str = ""
    figures: Mapping[str, float] = {}
    suite: str = ""
    backend: str = ""
    run_id: int | None = None
    since: str = ""
    failures: Mapping[str, int] = {}
    cases: tuple[Named, ...] = ()
    more_cases: int = 0
    tags: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    control: str = ""
    blind_spot: str = ""
    owner: str = ""
    reason: str = ""
    author: str = ""
    drill: bool = False
    urls: Mapping[str, str] = {}
    listed: tuple[Named, ...] = ()
    texts: tuple[str, ...] = ()


# Sentences --------------------------------------------------------------------------------------------------


def title(incident: Incident) -> str:
    """What is wrong, where: "mem0 got worse on golden". Of several series: how many."""
    signal = lead(incident)
    said = _TITLES[signal.key.kind](signal)
    others = len({(one.key.suite, one.key.backend) for one in incident.shown} - {signal.key[1:3]})
    return f"{said}, and {words.count(others, 'series', 'series')} more" if others else said


def evidence(incident: Incident) -> str:
    """Why it is said, in a sentence, of its worst signal."""
    said = signal_evidence(lead(incident))
    untaken = str(incident.context.get("untaken", ""))
    return f"{said} It stays suspected: {untaken}." if untaken and incident.told_at is None else said


def signal_evidence(signal: Signal) -> str:
    """Why one of its signals is told."""
    return _EVIDENCE[signal.key.kind](signal)


def lead(incident: Incident) -> Signal:
    """The signal that an alert is named after: of its worst kind, the deepest."""
    shown = [one for one in incident.shown if one.key.kind == incident.kind.name]
    return max(shown, key=lambda one: one.depth)


def badge(incident: Incident) -> str:
    """State and kind in a word or two: "Worse", "Suspected", "Resolved"."""
    if incident.state in ("open", "acknowledged"):
        return KINDS[lead(incident).key.kind].words
    return STATES[incident.state]


def _where(signal: Signal) -> str:
    return f"{signal.key.backend} on {signal.key.suite}"


def _label(signal: Signal) -> str:
    return words.label(signal.key.subject)


_TITLES: Mapping[str, Callable[[Signal], str]] = {
    "critical": lambda one: f"{_where(one)} lost {words.count(len(one.cases), 'critical case')}",
    "regression": lambda one: f"{_where(one)} got worse",
    "improvement": lambda one: f"{_where(one)} got better",
    "leak": lambda one: f"{_where(one)} loses a little every week",
    "threshold": lambda one: f"{_where(one)}: {_label(one)} is beyond its bar",
    "shrinkage": lambda one: f"The index of {one.key.backend} shrinks",
    "failing": lambda one: f"{_where(one)} could not be measured",
    "missed": lambda one: f"Schedule {one.key.subject} did not run",
    "slower": lambda one: f"{_where(one)} got slower",
    "dearer": lambda one: f"{_where(one)} got dearer",
    "judge": lambda one: f"Judge {one.key.subject} drifts",
    "proof": lambda one: "The alarm itself was not proven",
}


def _of_verdict(signal: Signal) -> str:
    return f"{verdict_words.evidence(signal.content)}{_provisional(signal)}"


def _critical(signal: Signal) -> str:
    trials = sum(look["trials"] for look in signal.content["looks"])
    named = words.listed(signal.cases[:MOST_CASES])
    more = len(signal.cases) - MOST_CASES
    told = f"{named} and {more} more" if more > 0 else named
    said = f"{told} failed in at least {ceil(ENOUGH_LOST * trials)} of {words.count(trials, 'trial')}."
    return f"{said}{_untaken(signal)}{_provisional(signal)}"


def _leak(signal: Signal) -> str:
    leak = signal.content["leak"]
    before, after = (words.amount("pass", leak[name]) for name in ("before", "after"))
    first = leak["first_bad"]
    return (
        f"The pass rate sank slowly from {before} to {after}, from run {first} on: no single night showed it."
    )


def _threshold(signal: Signal) -> str:
    told = signal.content
    metric = told["metric"]
    side = "at most" if METRICS[metric].better == "lower" else "at least"
    mean, bar = words.amount(metric, told["mean"]), words.amount(metric, told["bar"])
    bounds = words.interval(metric, told["low"], told["high"])
    told_as = f"{mean} ({bounds})" if bounds else mean
    return f"{words.label(metric).capitalize()} is {told_as}, n {told['n']}; it should be {side} {bar}."


def _shrinkage(signal: Signal) -> str:
    told = signal.content
    if "counted" in told and isinstance(told["counted"], Mapping):
        counts = words.listed([f"{leg} {n:,}" for leg, n in told["counted"].items()])
        return f"Its indexes disagree: {counts} memories."
    share = 100 * told["counted"] / told["expected"]
    return (
        f"The {told['leg']} index holds {told['counted']:,} of {told['expected']:,} memories ({share:.1f} %)."
    )


def _failing(signal: Signal) -> str:
    status = signal.content["status"]
    why = "its adapter is broken" if status == "void" else "too many of its answers were errors"
    return f"The run is {status}: {why}. That says nothing of the backend's answers."


def _missed(signal: Signal) -> str:
    times = signal.content["times"]
    last = datetime.fromisoformat(times[-1])
    n = "once" if len(times) == 1 else words.count(len(times), "time")
    return f"It should have run {n}, last at {last:%Y-%m-%d %H:%M} UTC, and nobody has made up for it."


def _moved(signal: Signal) -> str:
    return f"{verdict_words.moved({'moved': [signal.content]})[0].capitalize()}.{_untaken(signal)}"


def _provisional(signal: Signal) -> str:
    """What moods of so few days look like is not known yet."""
    if not signal.content.get("provisional"):
        return ""
    return f" Provisional: its baseline is of {words.count(signal.content['days'], 'day')}."


def _untaken(signal: Signal) -> str:
    """Why nobody asked once more."""
    why = signal.content.get("untaken")
    return f" {why[:1].upper()}{why[1:]}." if why else ""


def _proof(signal: Signal) -> str:
    return str(signal.content.get("reason", "No drill has arrived."))


_EVIDENCE: Mapping[str, Callable[[Signal], str]] = {
    "critical": _critical,
    "regression": _of_verdict,
    "improvement": _of_verdict,
    "leak": _leak,
    "threshold": _threshold,
    "shrinkage": _shrinkage,
    "failing": _failing,
    "missed": _missed,
    "slower": _moved,
    "dearer": _moved,
    "judge": _proof,
    "proof": _proof,
}


# Messages ---------------------------------------------------------------------------------------------------


def message(incident: Incident, step: Step, key: str, base_url: str = "") -> Message:
    """What is to be told of a step of an alert that is kept. `base_url`: of the dashboard, '' without
    links."""
    signal = lead(incident)
    content = signal.content if "difference" in signal.content else {}
    base = "" if incident.drill else base_url  # what a drill measured is in a record that is gone
    cases = tuple(Named(name, _case_url(base, signal, name)) for name in incident.cases[:MOST_CASES])
    return Message(
        key=key,
        action=step.action,
        alert_id=incident.id,
        kind=signal.key.kind,
        severity=incident.kind.severity,
        state=incident.state,
        title=title(incident),
        evidence=evidence(incident),
        difference=verdict_words.how_much(content) if content else "",
        figures=_figures(content) if content else {},
        suite=signal.key.suite,
        backend=signal.key.backend,
        run_id=signal.run_id,
        since=str(incident.context.get("at", incident.opened_at.isoformat())),
        failures=incident.context.get("failures", {}),
        cases=cases,
        more_cases=max(len(incident.cases) - MOST_CASES, 0),
        tags=tuple(f"{tag} {n} of {of}" for tag, n, of in incident.context.get("tags", ())),
        suspects=tuple(str(one["sentence"]) for one in incident.suspects[:MOST_CASES]),
        control=verdict_words.control(content) if content else "",
        blind_spot=verdict_words.blind_spot(content) if content else "",
        owner=incident.owner,
        reason=step.reason,
        author="" if step.author == MACHINE else step.author,
        drill=incident.drill,
        urls=_urls(base_url, incident, signal),
    )


def _figures(content: Mapping[str, Any]) -> dict[str, float]:
    found = content["difference"] or {}
    told = {name: found.get(name) for name in ("old", "new", "low", "high", "n")}
    told |= {"trials": sum(look["trials"] for look in content["looks"])}
    told |= {"lost": len(content["lost"]), "gained": len(content["gained"])}
    return {name: value for name, value in told.items() if value is not None}


def _urls(base: str, incident: Incident, signal: Signal) -> dict[str, str]:
    """Every one opens a page: who follows a link changes nothing."""
    if not base:
        return {}
    alert = {"alert": incident.id}
    urls = {"open": _url(base, "alert", alert)}
    if incident.state == "open":
        urls["acknowledge"] = _url(base, "alert", {**alert, "do": "acknowledge"})
    if signal.run_id is not None:
        urls["run"] = _url(base, "run", {"run": signal.run_id})
    if sides := compared(incident, signal):
        urls["compare"] = _url(base, "compare", sides)
    if signal.key.suite and not incident.drill:
        series = {"suite": signal.key.suite, "backends": signal.key.backend}
        urls["trend"] = _url(base, "trends", series)
    return urls


def compared(incident: Incident, signal: Signal) -> dict[str, str]:
    """The address of a comparison: the last good run against the first bad one; empty where one is not
    known."""
    runs = incident.last_good_run_id, signal.first_run_id
    if incident.drill or not signal.key.suite or None in runs or runs[0] == runs[1]:
        return {}
    return {"suite": signal.key.suite, "a": str(runs[0]), "b": str(runs[1])}


def _case_url(base: str, signal: Signal, case: str) -> str:
    if not base:
        return ""
    where = {"suite": signal.key.suite, "case": case, "backend": signal.key.backend, "run": signal.run_id}
    return _url(base, "case", {name: value for name, value in where.items() if value is not None})


def _url(base: str, page: str, parameters: Mapping[str, object]) -> str:
    return f"{base.rstrip('/')}/{page}?{urlencode(parameters)}"
