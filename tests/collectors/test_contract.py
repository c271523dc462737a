"""What the checks of a backend find, with one fault at a time put into a store that has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from collectors.backend import BackendConfig, BackendError, Hit, Recall, open_backend
from collectors.backends.keyword import Keyword
from collectors.contract import adapter_checks, contract_report
from collectors.suite import Scope

BOX = "memtrend-test-1"


def faulty(**changes: Any) -> Any:
    """The keyword store with some of its attributes replaced."""
    return type("Faulty", (Keyword,), changes)(BackendConfig("faulty", "keyword"))


def answering(*hits: Any) -> dict[str, Callable[..., Recall]]:
    return {"recall": lambda self, scope, query, k, leg=None: Recall(hits)}


def broken(backend: Any) -> dict[str, str]:
    """Failed adapter checks by name, each with an advice."""
    failed = [result for result in adapter_checks(backend, BOX) if not result.ok]
    assert all(result.advice for result in failed)
    return {result.name: result.detail for result in failed}


def bad(backend: Any) -> dict[str, str]:
    failed = [result for result in contract_report(backend, BOX) if not result.ok]
    assert all(result.advice for result in failed)
    return {result.name: result.detail for result in failed}


def raising(*errors: Exception) -> Callable[..., Any]:
    """A verb that raises these one after the other, and then does nothing."""
    left: Iterator[Exception] = iter(errors)

    def verb(*_: Any, **__: Any) -> None:
        for error in left:
            raise error

    return verb


class TestAdapterChecks:
    @pytest.mark.parametrize(
        ("changes", "found"),
        [
            (answering(Hit("m", "text", float("nan"))), "score of 'm' is nan, not a finite number or None"),
            (answering(Hit("m", "text", "high")), "score of 'm' is 'high', not a finite number"),  # type: ignore[arg-type]
            (answering(Hit(3, "text")), "not Hit(id: str, text: str)"),  # type: ignore[arg-type]
            (answering(Hit("m", None)), "not Hit(id: str, text: str)"),  # type: ignore[arg-type]
            (answering("text"), "not Hit(id: str, text: str)"),
            (answering(Hit("m", "text", metadata=[1])), "metadata of 'm' is list"),  # type: ignore[arg-type]
            ({"recall": lambda *_: []}, "recall returned list, not Recall"),
            ({"recall": raising(*[KeyError("no index")] * 3)}, "KeyError: 'no index'"),
        ],
    )
    def test_a_recall_of_wrong_types(self, changes: dict[str, Any], found: str) -> None:
        """What a recall returns or raises is found, in words."""
        assert found in broken(faulty(**changes))["recall"]

    def test_ids_that_were_never_planted(self) -> None:
        """An adapter that declares ids and returns its own is broken: every answer would be judged wrong."""
        hit = Hit("uuid-1", "The spare key")
        assert broken(faulty(**answering(hit))) == {"ids": "never planted: uuid-1"}
        without = faulty(**answering(hit))
        without.capabilities -= {"ids"}
        assert broken(without) == {}

    @pytest.mark.parametrize("at", ["2026-02-03T04:05:06", "yesterday", 17700, "2026-02-03T09:05:06+00:00"])
    def test_a_wrong_clock(self, at: Any) -> None:
        """An event time that came back without its zone, or moved, is found."""
        hit = Hit("memtrend-check-1", "The spare key", metadata={"at": at})
        assert broken(faulty(**answering(hit))) == {"clock": f"2026-02-03 04:05:06+00:00 came back as {at!r}"}

    def test_the_same_moment_in_another_zone_is_right(self) -> None:
        """An event time is an instant, not a text; leaving it out is right too."""
        hits = (
            Hit("memtrend-check-1", "a", metadata={"at": "2026-02-03T06:05:06+02:00"}),
            Hit("memtrend-check-2", "b"),
        )
        assert broken(faulty(**answering(*hits))) == {}

    @pytest.mark.parametrize(
        ("changes", "name", "found"),
        [
            ({"count": lambda *_: 3}, "count", "count returned int, not a mapping"),
            ({"count": lambda *_: {"keyword": "3"}}, "count", "not numbers by index"),
            ({"count": lambda *_: {"keyword": -1}}, "count", "not numbers by index"),
            ({"count": lambda *_: {"rows": 3}}, "count", "count says nothing of the legs keyword"),
            ({"remember": lambda *_: "ok"}, "remember", "remember returned str, not Usage"),
            ({"amend": raising(*[ValueError("no")] * 3)}, "changes", "ValueError: no"),
            ({"versions": lambda *_: {"sqlite": 3}}, "versions", "not texts by name"),
        ],
    )
    def test_other_verbs(self, changes: dict[str, Any], name: str, found: str) -> None:
        """Counts, changes and versions are checked under names of their own."""
        assert found in broken(faulty(**changes))[name]

    @pytest.mark.parametrize("legs", [(), ["keyword"], ("keyword", 2)])
    def test_legs_that_do_not_fit(self, legs: Any) -> None:
        """Legs are a tuple of names, there exactly when they are declared."""
        backend = faulty()
        backend.legs = legs
        assert broken(backend)["declaration"].startswith(f"legs is {legs!r}")

    def test_a_leg_that_does_not_answer(self) -> None:
        """Each leg is asked, and its answer checked like any other."""

        def recall(self: Any, scope: Scope, query: str, k: int, leg: str | None = None) -> Any:
            return "?" if leg else Recall(())

        assert broken(faulty(recall=recall)) == {"legs": "recall returned str, not Recall"}

    def test_unknown_capabilities(self) -> None:
        """A word that is no capability is told."""
        backend = faulty()
        backend.capabilities |= {"fly"}
        assert broken(backend) == {"declaration": "unknown capabilities: fly"}

    def test_a_failed_reset_ends_the_list(self) -> None:
        """What nothing later could stand on is the last check but the cleaning up."""
        results = adapter_checks(faulty(reset=raising(*[TypeError("no")] * 9)), BOX)
        assert [(result.name, result.ok) for result in results] == [
            ("declaration", True),
            ("reset", False),
            ("reset again", False),
        ]

    def test_one_late_answer_is_no_fault(self) -> None:
        """A failure that passes is asked again; a permanent one is not."""
        assert broken(faulty(settle=raising(ConnectionError("once"), ConnectionError("twice")))) == {}
        permanent = raising(BackendError("bad key", permanent=True))
        assert broken(faulty(settle=permanent)) == {"settle": "bad key"}

    def test_not_settling_is_no_fault(self) -> None:
        """A store that is slow is measured, not refused."""
        slow = faulty(settle=raising(BackendError("still indexing")))
        details = {result.name: result.detail for result in adapter_checks(slow, BOX)}
        assert details["settle"] == "did not settle: still indexing"

    @pytest.mark.parametrize("type", ["keyword", "dense", "hybrid", "everything"])
    def test_they_leave_nothing_behind(self, type: str) -> None:
        """After the checks and the report the namespace holds nothing, also when one of them failed."""
        backend = open_backend(BackendConfig(type, type))
        adapter_checks(backend, BOX)
        contract_report(backend, BOX)
        assert set(backend.count(Scope(BOX)).values()) == {0}
        backend.close()

        broken_halfway = faulty(**answering(Hit(3, "text")))  # type: ignore[arg-type]
        adapter_checks(broken_halfway, BOX)
        assert broken_halfway.count(Scope(BOX)) == {"keyword": 0}


class TestReport:
    @pytest.mark.parametrize("type", ["keyword", "dense", "hybrid"])
    def test_a_good_memory_has_no_findings(self, type: str) -> None:
        """The embedded stores keep the whole contract."""
        backend = open_backend(BackendConfig(type, type))
        assert bad(backend) == {}
        backend.close()

    @pytest.mark.parametrize(
        ("changes", "found"),
        [
            (answering(), {"finds", "forgets", "amends"}),
            ({"forget": lambda *_: None}, {"forgets"}),
            ({"forget": lambda self, scope, ids: self.reset(scope)}, {"forgets"}),
            ({"amend": lambda *_: None}, {"amends"}),
        ],
    )
    def test_a_fault_is_told_under_its_name(self, changes: dict[str, Any], found: set[str]) -> None:
        """Each fault is found, and nothing else is."""
        assert bad(faulty(**changes)).keys() == found

    @pytest.mark.parametrize(
        ("ignored", "found"),
        [("user", {"users"}), ("domains", {"domains"}), ("session", {"sessions"}), ("k", {"k"})],
    )
    def test_what_is_ignored_is_told(self, ignored: str, found: set[str]) -> None:
        """A store that does not heed a part of the question is found out by just that."""
        everything = {"user": "memtrend-check", "domains": (), "session": None}

        class Ignores(Keyword):
            def remember(self, scope: Scope, memories: Any) -> Any:
                return super().remember(self.blind(scope) if ignored == "user" else scope, memories)

            def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
                return super().recall(self.blind(scope), query, 100 if ignored == "k" else k, leg)

            def blind(self, scope: Scope) -> Scope:
                fields = {"user": scope.user, "domains": scope.domains, "session": scope.session}
                blind = {ignored: everything[ignored]} if ignored in everything else {}
                return Scope(scope.namespace, **{**fields, **blind})  # type: ignore[arg-type]

        assert bad(Ignores(BackendConfig("faulty", "keyword"))).keys() == found

    def test_changing_answers_are_told(self) -> None:
        """A store that declares that it repeats itself, and does not, is found out."""
        turn = iter(range(1000))

        class Turns(Keyword):
            def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
                hits = super().recall(scope, query, k, leg).hits
                return Recall(hits if next(turn) % 2 else hits[::-1])

        assert "repeats" in bad(Turns(BackendConfig("faulty", "keyword")))

    def test_a_fragile_query_is_told(self) -> None:
        """A store that hands the question to its query language as it is, is found out."""

        class Fragile(Keyword):
            def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
                if '"' in query:
                    raise SyntaxError("unterminated string")
                return super().recall(scope, query, k, leg)

        assert bad(Fragile(BackendConfig("faulty", "keyword"))) == {
            "odd questions": "SyntaxError: unterminated string"
        }
