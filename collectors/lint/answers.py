"""Rules about what is expected: can the answer come back, and nothing else pass for it?"""

from __future__ import annotations

from collections.abc import Iterator

from collectors.lint.findings import quoted
from collectors.lint.view import Case
from collectors.scorers import Want
from collectors.suite import Memory

COMMON = 3
"""A pattern is too common when more than one in this many of the candidates match it."""


def no_writes(case: Case) -> Iterator[str]:
    if not case.around.memories and not case.probe.counts:
        yield "nothing is planted before the question"


def underivable(case: Case) -> Iterator[str]:
    if not case.around.memories:
        return
    for want in case.wants:
        if not case.is_broken(want) and not _answers(case, want):
            yield f"{_told(want)} {_whereabouts(case, want)}"


def _answers(case: Case, want: Want) -> list[Memory]:
    """Memories that give what is wanted. What another case planted is no answer: it may move away."""
    among = (case.pool.memories[place] for place in case.met(want))
    return [memory for memory in among if memory.id not in case.foreign]


def _whereabouts(case: Case, want: Want) -> str:
    """Where it would be found, if not among what may come back."""
    if case.met(want):
        return "is found only in what another case plants"
    held = {memory.id for memory in case.pool.memories}
    elsewhere = [
        memory
        for memory in case.around.memories
        if memory.id not in held and (memory.id == want.id or _any_finds(case, want.patterns, memory.text))
    ]
    if elsewhere:
        first = elsewhere[0]
        return f"is found only where the question does not reach: {quoted(first.text)} ({_home(first)})"
    return "is in nothing planted before the question"


def _any_finds(case: Case, patterns: tuple[str, ...], text: str) -> bool:
    return any(case.matcher.finds(pattern, text) for pattern in patterns)


def _home(memory: Memory) -> str:
    places = {"user": memory.user, "domain": memory.domain, "session": memory.session}
    return ", ".join(f"{name} {value}" for name, value in places.items() if value)


def _told(want: Want) -> str:
    if want.id is not None:
        return f"the wanted id {quoted(want.id)}"
    return " or ".join(quoted(pattern) for pattern in want.patterns[:3])


def forbidden_matches_wanted(case: Case) -> Iterator[str]:
    for want in case.wants:
        answers = _answers(case, want)
        if answers and all(case.is_forbidden(memory, "unwanted") for memory in answers):
            yield f"what is wanted is forbidden too: {quoted(answers[0].text)}"
        elif answers and all(case.is_left_out(memory) for memory in answers):
            yield f"what is wanted is none of only_ids: {quoted(answers[0].text)}"
    every = [memory for want in case.wants for memory in _answers(case, want)]
    if every and all(case.is_forbidden(memory, "unwanted_first") for memory in every):
        yield f"the answer itself may not come first: {quoted(every[0].text)}"


def forbidden_nothing(case: Case) -> Iterator[str]:
    if not case.around.memories:
        return
    for pattern in _forbidden(case):
        found = (case.around.memories[place] for place in case.matcher.hits(pattern, case.around))
        known = any(memory.id not in case.foreign for memory in found)
        if not known and pattern not in case.matcher.broken:
            yield f"{quoted(pattern)} is forbidden, but in nothing planted before the question"


def _forbidden(case: Case) -> list[str]:
    kinds = ("unwanted", "unwanted_first")
    found = (pattern for e in case.probe.expectations if e.kind in kinds for pattern in e.patterns)
    return list(dict.fromkeys(found))


def ambiguous(case: Case) -> Iterator[str]:
    for want in case.wants:
        others = [] if want.id is not None else _taken_for_the_answer(case, want)
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            yield f"{_told(want)} also matches {quoted(others[0].text)} ({others[0].id}){more}"


def _taken_for_the_answer(case: Case, want: Want) -> list[Memory]:
    """What passes for the answer, and is not: where the case planted an answer, all that it did not plant;
    where the answer is in the world, what other cases planted; what the case itself does not want first;
    and beside a memory that says 45 what says 450. Where memories are wanted by id as well, these alone
    can pass."""
    found = [case.pool.memories[place] for place in case.met(want)]
    planted = [memory for memory in found if memory.id in case.own]
    mine = planted or [memory for memory in found if memory.id not in case.foreign]
    if not mine or any(other.id for other in case.wants):
        return []
    answers = [memory for memory in mine if not case.is_forbidden(memory, "unwanted_first")] or mine
    if len(answers) > 1:
        answers = [memory for memory in answers if not case.is_met_in_part(want, memory)] or answers
    texts = {memory.text for memory in answers}
    return [
        memory for memory in found if memory.text not in texts and not case.is_forbidden(memory, "unwanted")
    ]


def too_common(case: Case) -> Iterator[str]:
    for want in case.wants:
        n = len(case.met(want)) if want.patterns else 0
        if n > 1 and n * COMMON > len(case.pool):
            yield f"{_told(want)} matches {n} of the {len(case.pool)} memories that may come back"


def k_too_large(case: Case) -> Iterator[str]:
    kinds = {expectation.kind for expectation in case.probe.expectations}
    if not kinds <= {"any", "all", "unwanted_first"} or not case.pool.memories:
        return  # what may not come back at all still tells one answer from another
    if case.probe.k >= len(case.pool):
        yield f"k is {case.probe.k}, and {len(case.pool)} memories may come back: all of them pass"
