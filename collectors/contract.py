"""Is an adapter whole, and what does its backend do that it ought not? Two lists of checks over an open
backend, in words.

`adapter_checks` finds what makes an adapter *broken*: its results would mean nothing, so a run is void.
`contract_report` finds what makes a backend *bad*: that is a result, told here for someone who writes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import stamina

from collectors.backend import CAPABILITIES, Backend, BackendError, BackendGone, Hit, Usage
from collectors.calls import describe, is_transient
from collectors.diagnosis import checked
from collectors.suite import Memory, Scope

ATTEMPTS = 3
"""An answer that was late once is no broken adapter."""


class CheckResult(NamedTuple):
    """`detail` says what was seen, `advice` what to do about it ("" where nothing is to be done)."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


See = Callable[[Backend, Scope], str]


class Check(NamedTuple):
    """`see` returns what it saw, or raises: `BackendError` with a sentence of its own, or what the backend
    raised. `then` False: without this no later check can be made."""

    name: str
    see: See
    advice: str
    then: bool = True


def adapter_checks(backend: Backend, namespace: str) -> list[CheckResult]:
    """Broken or not, in a handful of calls within the namespace, which is left empty. Empty answers are fine.
    The list ends at a failed check that the later ones stand on."""
    return _made(ADAPTER_CHECKS, backend, Scope(namespace, "memtrend-check"))


def contract_report(backend: Backend, namespace: str) -> list[CheckResult]:
    """What a memory owes its users: to find, to keep apart, to forget, to honour k. Ask it of a backend that
    passed `adapter_checks`. What a backend does not declare is not asked."""
    return _made(CONTRACT, backend, Scope(namespace, "memtrend-check"))


def _made(checks: Sequence[Check], backend: Backend, scope: Scope) -> list[CheckResult]:
    """The last check cleans up, and so is always made."""
    *checks, last = checks
    results = []
    for check in checks:
        results.append(_result(check, backend, scope))
        if not (results[-1].ok or check.then):
            break
    return [*results, _result(last, backend, scope)]


def _result(check: Check, backend: Backend, scope: Scope) -> CheckResult:
    asking = stamina.RetryingCaller(attempts=ATTEMPTS, timeout=None, wait_max=1.0).on(is_transient)
    try:
        return CheckResult(check.name, True, asking(check.see, backend, scope))
    except Exception as error:  # whatever an adapter raises is the finding
        if type(error) is BackendGone:  # not a call that hung: its process was killed, perhaps by somebody
            raise
        return CheckResult(check.name, False, describe(error), check.advice)


def _unless(fine: bool, fault: str) -> None:
    if not fine:
        raise BackendError(fault, permanent=True)


# Broken adapters

PLANTED = (
    Memory(
        "memtrend-check-1",
        "The spare key to the boathouse hangs behind the barometer.",
        at=datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
        user="memtrend-check",
        domain="house",
        metadata={"source": "note"},
    ),
    Memory(
        "memtrend-check-2",
        "Zoë's café in Łódź opens at 7 o'clock – «не раньше».",
        role="assistant",
        at=datetime(2026, 2, 4, 4, 5, 6, tzinfo=UTC),
        user="memtrend-check",
        domain="travel",
    ),
)
QUESTION = "Where is the spare key to the boathouse?"


def _declaration(backend: Backend, scope: Scope) -> str:
    capabilities: Any = backend.capabilities
    legs: Any = backend.legs
    _unless(isinstance(capabilities, frozenset | set), f"capabilities is a {type(capabilities).__name__}")
    unknown = sorted(map(str, capabilities - CAPABILITIES))
    _unless(not unknown, f"unknown capabilities: {', '.join(unknown)}")
    _unless(isinstance(legs, tuple) and all(isinstance(leg, str) for leg in legs), f"legs is {legs!r}")
    _unless(bool(legs) == ("legs" in capabilities), f"legs is {legs!r}, capabilities: {sorted(capabilities)}")
    return ", ".join(sorted(capabilities)) or "nothing declared"


def _reset(backend: Backend, scope: Scope) -> str:
    backend.reset(scope)
    return f"namespace {scope.namespace}"


def _remember(backend: Backend, scope: Scope) -> str:
    usage = backend.remember(scope, PLANTED)
    _unless(isinstance(usage, Usage), f"remember returned {type(usage).__name__}, not Usage")
    return f"{len(PLANTED)} memories planted"


def _settle(backend: Backend, scope: Scope) -> str:
    """Not settling in time is a result of the run, and no fault of the adapter."""
    try:
        backend.settle(scope)
    except BackendError as error:
        if error.permanent:
            raise
        return f"did not settle: {describe(error)}"
    return "settled"


def _recall(backend: Backend, scope: Scope) -> str:
    return f"{len(_hits(backend, scope))} hits"


def _ids(backend: Backend, scope: Scope) -> str:
    if "ids" not in backend.capabilities:
        return "not declared"
    strange = sorted({hit.id for hit in _hits(backend, scope)} - {memory.id for memory in PLANTED})
    _unless(not strange, f"never planted: {', '.join(strange)}")
    return "those planted"


def _clock(backend: Backend, scope: Scope) -> str:
    planted = {memory.id: memory.at for memory in PLANTED}
    returned = {hit.id: hit.metadata["at"] for hit in _hits(backend, scope) if hit.metadata.get("at")}
    for id in planted.keys() & returned.keys():
        _unless(_moment(returned[id]) == planted[id], f"{planted[id]} came back as {returned[id]!r}")
    return f"{len(returned)} event times came back"


def _legs(backend: Backend, scope: Scope) -> str:
    for leg in backend.legs:
        checked(backend.recall(scope, QUESTION, 5, leg))
    return ", ".join(backend.legs) or "none"


def _count(backend: Backend, scope: Scope) -> str:
    if "count" not in backend.capabilities:
        return "not declared"
    counts: Any = backend.count(scope)
    _unless(isinstance(counts, Mapping), f"count returned {type(counts).__name__}, not a mapping")
    numbers = all(isinstance(index, str) and type(n) is int and n >= 0 for index, n in counts.items())
    _unless(numbers, f"count returned {dict(counts)!r}, not numbers by index")
    missing = [leg for leg in backend.legs if leg not in counts]
    _unless(not missing, f"count says nothing of the legs {', '.join(missing)}")
    return ", ".join(f"{index} {number}" for index, number in counts.items())


def _changes(backend: Backend, scope: Scope) -> str:
    """Only that the calls work. Amending needs the id to be known, which an extractor may have lost."""
    asked = {
        "amend": lambda: backend.amend(scope, PLANTED[0].id, "The spare key hangs in the pantry."),
        "forget": lambda: backend.forget(scope, [PLANTED[0].id]),
        "forget_user": lambda: backend.forget_user(scope),
    }
    declared = [verb for verb in asked if verb in backend.capabilities]
    for verb in declared:
        asked[verb]()
    return ", ".join(declared) or "none declared"


def _versions(backend: Backend, scope: Scope) -> str:
    versions: Any = backend.versions()
    texts = isinstance(versions, Mapping) and all(isinstance(value, str) for value in versions.values())
    _unless(texts, f"versions returned {versions!r:.80}, not texts by name")
    return ", ".join(sorted(versions)) or "none"


def _hits(backend: Backend, scope: Scope, query: str = QUESTION, k: int = 5) -> tuple[Hit, ...]:
    return checked(backend.recall(scope, query, k)).hits


def _moment(at: Any) -> datetime | None:
    try:
        moment = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else None


ADAPTER_CHECKS = (
    Check(
        "declaration",
        _declaration,
        f"Declare some of: {', '.join(sorted(CAPABILITIES))}; with legs, their names.",
    ),
    Check("reset", _reset, "reset(scope) must make and empty the namespace without raising.", then=False),
    Check("remember", _remember, "remember(scope, memories) must store them and return Usage().", then=False),
    Check("settle", _settle, "settle(scope) returns when what was planted can be found; it may be empty."),
    Check(
        "recall",
        _recall,
        "recall(scope, query, k) returns Recall(hits), each a Hit with id and text.",
        then=False,
    ),
    Check("ids", _ids, "Return each memory under the id it was planted with, or do not declare ids."),
    Check("clock", _clock, "Give event times back as ISO 8601 with their time zone, or leave `at` out."),
    Check("legs", _legs, "recall(..., leg=NAME) must ask that index alone, for each name in legs."),
    Check("count", _count, "count(scope) returns {index: number}, with an entry for each leg."),
    Check("changes", _changes, "A declared amend, forget or forget_user must work on what was planted."),
    Check("versions", _versions, "versions() returns texts by name, or nothing."),
    Check("reset again", _reset, "reset(scope) must also empty a namespace that holds something."),
)


# Bad backends

TOPICS = ("kettle", "ladder", "violin", "bicycle", "lantern", "umbrella", "telescope", "hammock")
HOSTILE = (
    "?",
    '"',
    "'; DROP TABLE memory; --",
    "NEAR(a b) AND *",
    "\0",
    "{} [] $",
    "\N{GRINNING FACE}" * 50,
)


def _memory(topic: str, **fields: Any) -> Memory:
    return Memory(f"memtrend-{topic}", f"The {topic} stands in the shed behind the mill.", **fields)


def _question(topic: str) -> str:
    return f"Where is the {topic}?"


def _plant(backend: Backend, scope: Scope, *memories: Memory) -> None:
    backend.reset(scope)
    for memory in memories:
        backend.remember(Scope(scope.namespace, memory.user, session=memory.session), [memory])
    backend.settle(scope)


def _topics(backend: Backend, scope: Scope, query: str, k: int = len(TOPICS)) -> list[str]:
    """Of the hits, best first. By their words: an extractor may lose ids and rewrite texts."""
    texts = [hit.text.lower() for hit in _hits(backend, scope, query, k)]
    return [topic for text in texts for topic in TOPICS if topic in text]


def _finds(backend: Backend, scope: Scope) -> str:
    _plant(backend, scope, *(_memory(topic, user=scope.user) for topic in TOPICS))
    lost = [topic for topic in TOPICS if topic not in _topics(backend, scope, _question(topic), 3)]
    _unless(not lost, f"of {len(TOPICS)} memories asked for by name, not in the first 3: {', '.join(lost)}")
    return f"all {len(TOPICS)} in the first 3"


def _honours_k(backend: Backend, scope: Scope) -> str:
    number = len(_hits(backend, scope, "What stands in the shed?", 2))
    _unless(number <= 2, f"asked for 2 hits, returned {number}")
    return f"asked for 2 hits, returned {number}"


def _repeats(backend: Backend, scope: Scope) -> str:
    if "deterministic" not in backend.capabilities:
        return "not declared"
    first, second = (_hits(backend, scope, "What stands in the shed?", 5) for _ in range(2))
    _unless(first == second, "the same question twice, two answers")
    return "the same question twice, one answer"


def _survives(backend: Backend, scope: Scope) -> str:
    for query in HOSTILE:
        _hits(backend, scope, query)
    return f"{len(HOSTILE)} odd questions answered"


def _apart(mine: dict[str, str], other: dict[str, str], asked: dict[str, Any]) -> See:
    """Sees whether memories that differ in one field of theirs answer each other's questions."""

    def see(backend: Backend, scope: Scope) -> str:
        fields = [{"user": scope.user, **differing} for differing in (mine, other)]
        _plant(backend, scope, _memory("kettle", **fields[0]), _memory("ladder", **fields[1]))
        found = _topics(backend, replace(scope, **asked), _question("ladder"))
        _unless("ladder" not in found, f"asked for {_shown(mine)}, it returned what is of {_shown(other)}")
        return f"{_shown(mine)} and {_shown(other)} kept apart"

    return see


def _shown(fields: dict[str, str]) -> str:
    return " ".join(f"{name} {value}" for name, value in fields.items())


def _forgets(backend: Backend, scope: Scope) -> str:
    if "forget" not in backend.capabilities:
        return "not declared"
    _plant(backend, scope, *(_memory(topic, user=scope.user) for topic in ("kettle", "ladder")))
    backend.forget(scope, ["memtrend-kettle"])
    backend.settle(scope)
    _unless("kettle" not in _topics(backend, scope, _question("kettle")), "a forgotten memory came back")
    _unless("ladder" in _topics(backend, scope, _question("ladder")), "forgetting one memory lost another")
    return "the one forgotten, the other kept"


def _amends(backend: Backend, scope: Scope) -> str:
    if "amend" not in backend.capabilities:
        return "not declared"
    _plant(backend, scope, _memory("kettle", user=scope.user))
    backend.amend(scope, "memtrend-kettle", "The violin stands in the shed behind the mill.")
    backend.settle(scope)
    found = _topics(backend, scope, _question("violin"))
    _unless("violin" in found, "the amended text is not found")
    _unless("kettle" not in found, "the old text came back")
    return "new text found, old one gone"


CONTRACT = (
    Check("finds", _finds, "settle must return only when what was planted can be found, and recall find it."),
    Check("k", _honours_k, "Pass k on to the search, or cut what comes back."),
    Check("repeats", _repeats, "Break ties (by id, say), or do not declare deterministic."),
    Check("odd questions", _survives, "Quote the query before it reaches a query language; none may raise."),
    Check(
        "users",
        _apart({"user": "anna"}, {"user": "bruno"}, {"user": "anna"}),
        "Return nothing of another user. It is scope.user; in a class of three methods `user` of write and "
        "search; over http `user_id` of both requests.",
    ),
    Check(
        "domains",
        _apart({"domain": "work"}, {"domain": "home"}, {"domains": ("work",)}),
        "Where domains are asked for, return nothing of another one. They are scope.domains; in a class of "
        "three methods `domains` of search; over http `domains` of the search request.",
    ),
    Check(
        "sessions",
        _apart({"session": "monday"}, {"session": "friday"}, {"session": "monday"}),
        "Where a session is asked for, return nothing of another one. It is scope.session; in a class of "
        "three methods `session` of write and search; over http `session_id` of both requests.",
    ),
    Check("forgets", _forgets, "forget must remove exactly the ids given, from every index."),
    Check("amends", _amends, "amend must replace the text in every index."),
    Check("empties", _reset, "reset(scope) must also empty a namespace that holds something."),
)
