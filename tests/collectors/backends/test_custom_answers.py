"""What a user's own memory may be asked and may answer, and what is said when it is wrong."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from collectors.backend import Backend, BackendError, Hit, Recall, Usage
from collectors.calls import CallTimeout, Line
from collectors.contract import adapter_checks, contract_report
from collectors.suite import Scope
from tests.collectors.backends.own_memories import (
    BOX,
    MEMORIES,
    OurVerbs,
    Smallest,
    WithKeywords,
    module,
    opened,
    planted,
)

__all__ = ["module"]
"""A fixture of the tests here."""


class TestVerbs:
    def test_our_verbs_work(self, module: ModuleType) -> None:
        """A class with our verbs is asked directly; what it has it is taken to declare."""
        backend = planted(opened(module, OurVerbs))
        assert backend.capabilities == {"forget", "count"}
        assert backend.recall(BOX, "The ferry leaves", 1) == Recall((Hit("m-2", MEMORIES[1].text, 3.0),))
        backend.forget(BOX, ["m-2"])
        assert backend.count(BOX) == {"memories": 1}
        assert backend.versions() == {}
        backend.close()

    def test_what_is_not_declared_is_refused(self, module: ModuleType) -> None:
        """Capabilities rule: a verb outside of them is not called."""
        backend = planted(opened(module, type("Shy", (OurVerbs,), {"capabilities": {"count"}})))
        for call in (lambda: backend.forget(BOX, ["m-1"]), lambda: backend.say(BOX, "hello")):
            with pytest.raises(BackendError, match="does not declare") as raised:
                call()
            assert raised.value.permanent
        assert backend.count(BOX) == {"memories": 2}

    def test_declared_and_missing_is_an_error(self, module: ModuleType) -> None:
        """A declared verb must be there; a word that is no capability is told with those that are."""
        with pytest.raises(BackendError, match="declares 'amend' and has no method amend"):
            opened(module, type("Boasts", (OurVerbs,), {"capabilities": {"amend"}}))
        with pytest.raises(BackendError, match="declares fly; known: amend, concurrent"):
            opened(module, type("Flies", (OurVerbs,), {"capabilities": {"fly"}}))

    def test_legs_are_passed_on(self, module: ModuleType) -> None:
        """A class with legs is asked one alone, and its only one names its count."""

        class OneLeg(OurVerbs):
            legs = ("words",)

            def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Any:
                return [f"asked {leg}"]

        backend = planted(opened(module, OneLeg))
        assert "legs" in backend.capabilities
        assert backend.recall(BOX, "q", 5, "words").hits[0].text == "asked words"
        assert backend.count(BOX) == {"words": 2}
        with pytest.raises(BackendError, match="no leg 'vector'; its legs: words"):
            backend.recall(BOX, "q", 5, "vector")

    def test_our_own_types_pass_unchanged(self, module: ModuleType) -> None:
        """Usage and Recall of a class that knows them are handed on as they are."""
        answer = Recall((Hit("m-1", "text", 0.5, {"a": 1}),), Usage(1, 20, 0.1), "a reply")

        class Knows(OurVerbs):
            def remember(self, scope: Scope, memories: Any) -> Any:
                return Usage(2, 30, 0.2)

            def recall(self, scope: Scope, query: str, k: int) -> Any:
                return answer

        backend = opened(module, Knows)
        backend.reset(BOX)
        assert backend.remember(BOX, MEMORIES) == Usage(2, 30, 0.2)
        assert backend.recall(BOX, "q", 5) is answer


HITS = {
    "text": ("a text", ("a text", None)),
    "text and score": (("a text", 0.5), ("a text", 0.5)),
    "id and text": (("m-9", "a text"), ("a text", None)),
    "id, text, score": (["m-9", "a text", np.float32(0.5)], ("a text", 0.5)),
    "mapping": ({"id": 9, "text": "a text", "score": 1}, ("a text", 1.0)),
    "Hit": (Hit("m-9", "a text"), ("a text", None)),
}
GARBAGE: dict[str, Any] = {
    "None": None,
    "a number": 42,
    "a text": "gate",
    "a mapping": {"hits": []},
    "numbers": [1, 2],
    "bytes": [b"gate"],
    "no text": [{"id": 1}],
    "score is a text": [("m-1", "gate", "high")],
    "too long": [("m-1", "gate", 1.0, {})],
}


class TestAnswers:
    def answering(self, module: ModuleType, answer: Any) -> Backend:
        backend = opened(module, type("Says", (Smallest,), {"search": lambda *_: answer}))
        backend.reset(BOX)
        return backend

    @pytest.mark.parametrize("shape", sorted(HITS))
    def test_hits_come_in_several_shapes(self, module: ModuleType, shape: str) -> None:
        """Whatever a search is used to return becomes a Hit."""
        given, expected = HITS[shape]
        [hit] = self.answering(module, [given]).recall(BOX, "q", 5).hits
        assert (hit.text, hit.score) == expected
        assert isinstance(hit.id, str)
        assert isinstance(hit.score, float | None)

    @pytest.mark.parametrize("kind", sorted(GARBAGE))
    def test_garbage_is_an_error(self, module: ModuleType, kind: str) -> None:
        """Anything else is a permanent error that shows what came and what is wanted."""
        with pytest.raises(BackendError, match=r"my_memory:Mine.search is .*; wanted: ") as raised:
            self.answering(module, GARBAGE[kind]).recall(BOX, "q", 5)
        assert raised.value.permanent

    @pytest.mark.parametrize("counted", [None, "3", 2.5, True, {"keyword": "three"}, [3]])
    def test_a_count_is_a_number(self, module: ModuleType, counted: Any) -> None:
        """A count that is none is an error, before it could be compared with anything."""
        backend = opened(module, type("Counts", (Smallest,), {"count": lambda self: counted}))
        with pytest.raises(BackendError, match=r"count is .*; wanted: a number"):
            backend.reset(BOX)

    def test_usage_is_ours_or_nothing(self, module: ModuleType) -> None:
        """A remember that returns something else is told so."""
        backend = opened(module, type("Chatty", (OurVerbs,), {"remember": lambda *_: "stored!"}))
        backend.reset(BOX)
        with pytest.raises(BackendError, match="remember is str 'stored!'; wanted: None or Usage"):
            backend.remember(BOX, MEMORIES)


class TestContract:
    @pytest.mark.parametrize("target", [Smallest, WithKeywords, OurVerbs])
    def test_both_shapes_are_whole_adapters(self, module: ModuleType, target: type) -> None:
        """The checks made before a run find no fault with a class that is fine."""
        assert [
            check for check in adapter_checks(opened(module, target), BOX.namespace) if not check.ok
        ] == []

    def test_shared_users_are_told(self, module: ModuleType) -> None:
        """A memory that knows no users gives one's memories to another, and its author hears of it."""
        report = {check.name: check for check in contract_report(opened(module, Smallest), BOX.namespace)}
        assert report["users"].detail == "asked for user anna, it returned what is of user bruno"
        assert "`user` of write and search" in report["users"].advice

    def test_one_that_hangs_is_left_behind(self, module: ModuleType) -> None:
        """On a line of calls the checks of a class that hangs end in time, and say so."""
        release = threading.Event()
        target = type("Mine", (Smallest,), {"search": lambda *_: release.wait(30)})
        line = Line(0.2, threading.Event())
        with pytest.raises(CallTimeout, match=r"no answer within 0\.2 s"):
            line(lambda: adapter_checks(opened(module, target), BOX.namespace))
        release.set()
