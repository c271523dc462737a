"""What a suite gives away: in what it plants, asks and expects, and in the worlds it stands in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from collectors import details
from collectors.lint.findings import Check, Found, quoted
from collectors.lint.view import Case, Pool, View
from collectors.suite import Amend, Expectation, ForgetUser, Memory, Plant, Probe, Step


def secrets(text: str) -> Iterator[str]:
    """What is found, and no more of it than tells where to look."""
    first: dict[int, details.Secret] = {}
    for one in details.secrets(text):
        first.setdefault(one.start, one)
    for one in first.values():
        shown = f": {quoted(text[one.start : one.start + 8])}…" if one.what == "a key" else ""
        yield f"looks like {one.what}{shown}"


def persons(text: str) -> Iterator[str]:
    return (f"looks like {what}: {quoted(detail)}" for what, detail in details.persons(text))


def in_all_that_is_said(check: Callable[[str], Iterator[str]]) -> Check:
    """A rule about every word of a suite: each thing once in a case, and of a world that many cases share
    once, at the first of them."""

    def checked(view: View) -> Iterator[Found]:
        seen: set[tuple[str, str]] = set()
        for case, said in zip(view.cases, _said(view), strict=True):
            for told in check(said):
                if (place := (case.probe.where or case.probe.case, told)) not in seen:
                    seen.add(place)
                    yield Found(case, told)
        for case, memory in _of_worlds(view):
            yield from (
                Found(case, f"its world, {memory.id}: {told}") for told in check("\n".join(_in(memory)))
            )

    return checked


def _said(view: View) -> list[str]:
    """What each case says, put together once for all rules."""
    if not view.said:
        view.said = ["\n".join(_said_by(case.probe)) for case in view.cases]
    return view.said


def _of_worlds(view: View) -> Iterator[tuple[Case, Memory]]:
    """Memories that no case planted itself, each with the first case that it stands beside."""
    pools: set[Pool] = set()
    seen: set[tuple[str, str]] = set()
    for case in view.cases:
        if case.around not in pools:
            pools.add(case.around)
            for memory in case.around.memories:
                known = memory.id in case.own or memory.id in case.foreign or (memory.id, memory.text) in seen
                if not known:
                    seen.add((memory.id, memory.text))
                    yield case, memory


def _said_by(probe: Probe) -> Iterator[str]:
    yield probe.query
    yield probe.source
    for step in probe.story:
        yield from _in_step(step)
    for expectation in probe.expectations:
        yield from _in_expectation(expectation)


def _in_step(step: Step) -> Iterator[str]:
    match step:
        case Plant(memories):
            for memory in memories:
                yield from _in(memory)
        case Amend(_, text) | ForgetUser(text):
            yield text
        case _:
            pass


def _in(memory: Memory) -> Iterator[str]:
    yield memory.text
    if memory.metadata:
        yield from _named(memory.metadata)


def _named(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name}: {value}" for name, value in values.items())


def _in_expectation(expectation: Expectation) -> Iterator[str]:
    yield from map(_unescaped, expectation.patterns)
    if expectation.values:
        yield from _named(dict(expectation.values))


_ESCAPE = re.compile(r"\\(?:(\W)|.)", re.DOTALL)


def _unescaped(pattern: str) -> str:
    """A pattern as what it finds would read: a dot that is meant is a dot."""
    return _ESCAPE.sub(lambda found: found[1] or " ", pattern) if "\\" in pattern else pattern
