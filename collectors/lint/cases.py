"""Rules about how a case is written: its patterns, its source, is it told twice, what does it give away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from collectors.lint.findings import Check, Found, quoted
from collectors.lint.view import Case, View
from collectors.suite import Amend, Memory, Plant, Probe, Step


def catastrophic(view: View) -> Iterator[Found]:
    return _broken(view, "catastrophic-regex", "may take longer than a second on one text")


def invalid(view: View) -> Iterator[Found]:
    return _broken(view, "invalid-regex", "is not a regular expression")


def _broken(view: View, rule: str, told: str) -> Iterator[Found]:
    """Each pattern once, however many cases bear it."""
    seen: set[str] = set()
    for case in view.cases if view.broken else ():
        for pattern in case.patterns:
            if view.broken.get(pattern) == rule and pattern not in seen:
                seen.add(pattern)
                yield Found(case, f"{quoted(pattern)} {told}")


def each_line(check: Callable[[Probe], Iterator[str]]) -> Check:
    """A rule about what stands on one line of a file, which the probes of a case share: each thing once."""

    def checked(view: View) -> Iterator[Found]:
        seen: set[tuple[str, str]] = set()
        for case in view.cases:
            for told in check(case.probe):
                if (place := (_line(case.probe), told)) not in seen:
                    seen.add(place)
                    yield Found(case, told)

    return checked


def each_question(check: Callable[[Probe], Iterator[str]]) -> Check:
    """A rule about a question alone, whatever it is asked of."""

    def checked(view: View) -> Iterator[Found]:
        return (Found(case, told) for case in view.cases for told in check(case.probe))

    return checked


def _line(probe: Probe) -> str:
    return probe.where or probe.case


NO_SOURCE = re.compile(
    r"\W*((todo|tbd|tba|fixme|xxx)\b(?!-).*|n/?a|none|unknown|nil)?\W*", re.IGNORECASE | re.DOTALL
)


def without_source(probe: Probe) -> Iterator[str]:
    if not probe.source.strip():
        yield "source is missing"
    elif NO_SOURCE.fullmatch(probe.source):
        yield f"source is still to be written: {quoted(probe.source)}"


# Told twice


def told_twice(view: View) -> Iterator[Found]:
    first: dict[object, Case] = {}
    for case in view.cases:
        known = first.setdefault(_story(case.probe), case)
        if known is not case and _line(known.probe) != _line(case.probe):
            yield Found(case, f"tells the story of {known.probe.case} again: {quoted(case.probe.query)}")


def _story(probe: Probe) -> object:
    """What is planted and asked, whatever it is called and whatever is expected."""
    asked = (_plain(probe.query), probe.user, probe.domains, probe.session, probe.all_sessions, probe.leg)
    return (asked, probe.k, probe.background, tuple(_told(step) for step in probe.story))


def _told(step: Step) -> object:
    match step:
        case Plant(memories):
            return tuple((_plain(m.text), m.role, m.at, m.user, m.domain, m.session) for m in memories)
        case Amend(_, text):
            return _plain(text)
        case _:
            return step


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


# What it hangs on

LEGS = ("keyword", "vector")
"""Of the backends that we ship; a test holds them together."""
IDENTIFIER = "identifier"
"""The tag of cases whose question has to name what is looked for."""


def unknown_leg(probe: Probe) -> Iterator[str]:
    if probe.leg and probe.leg not in LEGS:
        yield f"no backend of ours has a leg {quoted(probe.leg)}; they have {' and '.join(LEGS)}"


def told_by_the_question(case: Case) -> Iterator[str]:
    for want in case.wants if IDENTIFIER not in case.probe.tags else ():
        for pattern in want.patterns:
            if pattern not in case.matcher.broken and case.matcher.finds(pattern, case.probe.query):
                yield f"{quoted(pattern)} stands in the question itself"


_DAYS = "mon|tues|wednes|thurs|fri|satur|sun"
_FROM_TODAY = re.compile(
    rf"\b(yesterday|tomorrow|tonight|(?<!the )(last|next) (week(end)?|month|year|night|({_DAYS})day)"
    r"|(a|two|three|four|five|six|\d+) (day|week|month|year)s? ago|(vor)?gestern)\b",
    re.IGNORECASE,
)
_SIGNS = ("esterday", "omorrow", "onight", "ast ", "ext ", " ago", "estern")
"""One of them is in each, at whatever place: looked for first."""


def undated(probe: Probe) -> Iterator[str]:
    for step in probe.story:
        for memory in step.memories if isinstance(step, Plant) else ():
            if not memory.at and (found := _from_today(memory)):
                yield f"{quoted(found)} of no day: {quoted(memory.text)} has no event time"


def _from_today(memory: Memory) -> str:
    known = any(sign in memory.text for sign in _SIGNS)
    found = _FROM_TODAY.search(memory.text) if known else None
    return found[0] if found else ""
