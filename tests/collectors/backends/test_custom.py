"""A user's own memory in both shapes, and what is said when one is wrong."""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from collectors.backend import Backend, BackendConfig, BackendError, Hit, Recall, Usage, open_backend
from collectors.calls import CallTimeout, Line
from collectors.contract import adapter_checks, contract_report
from collectors.suite import Memory, Scope

BOX = Scope("memtrend-test-1", "anna")
MEMORIES = [
    Memory("m-1", "The gate closes at 21:40.", at=datetime(2026, 1, 2, tzinfo=UTC), domain="work"),
    Memory("m-2", "The ferry leaves at 22:30.", metadata={"source": "call"}),
]


class Smallest:
    """As small as a memory gets: three methods, no users, plain texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, text: str) -> None:
        self.texts.append(text)

    def search(self, query: str, k: int) -> list[str]:
        words = query.lower().split()
        return [text for text in self.texts if any(word in text.lower() for word in words)][:k]

    def count(self) -> int:
        return len(self.texts)


class WithKeywords:
    """Takes whom a memory is of, and its metadata; finds by user."""

    capabilities = frozenset({"ids"})

    def __init__(self, namespace: str, limit: int = 100) -> None:
        self.namespace, self.limit, self.rows = namespace, limit, list[dict[str, Any]]()
        self.closed = 0

    def write(self, text: str, *, id: str, user_id: str, metadata: dict[str, Any]) -> None:
        self.rows.append({"id": id, "text": text, "user": user_id, "metadata": metadata})

    def search(self, query: str, k: int, user_id: str = "nobody") -> list[dict[str, Any]]:
        rows = [row for row in self.rows if row["user"] == user_id]
        return [{**row, "score": 1 / (n + 1)} for n, row in enumerate(rows)][: min(k, self.limit)]

    def close(self) -> None:
        self.closed += 1


class OurVerbs:
    """The verbs that must be there, and a few that may."""

    def __init__(self) -> None:
        self.rows: dict[Scope, dict[str, Memory]] = {}

    def reset(self, scope: Scope) -> None:
        self.rows = {other: rows for other, rows in self.rows.items() if other.namespace != scope.namespace}

    def remember(self, scope: Scope, memories: list[Memory]) -> None:
        self.rows.setdefault(scope, {}).update({memory.id: memory for memory in memories})

    def recall(self, scope: Scope, query: str, k: int) -> list[tuple[str, str, float]]:
        rows = self.rows.get(scope, {})
        shared = {id: len(set(query.split()) & set(memory.text.split())) for id, memory in rows.items()}
        return [(id, rows[id].text, float(n)) for id, n in sorted(shared.items(), key=lambda x: -x[1])[:k]]

    def forget(self, scope: Scope, ids: list[str]) -> None:
        for id in ids:
            self.rows.get(scope, {}).pop(id, None)

    def count(self, scope: Scope) -> int:
        return sum(len(rows) for other, rows in self.rows.items() if other.namespace == scope.namespace)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module `my_memory` that a test fills with classes."""
    module = ModuleType("my_memory")
    monkeypatch.setitem(sys.modules, "my_memory", module)
    return module


def opened(module: ModuleType, target: Any, **options: Any) -> Backend:
    module.Mine = target  # type: ignore[attr-defined]
    return open_backend(BackendConfig("mine", "my_memory:Mine", options))


def planted(backend: Backend, scope: Scope = BOX) -> Backend:
    backend.reset(scope)
    backend.remember(scope, MEMORIES)
    backend.settle(scope)
    return backend


class TestFinding:
    def test_a_class_in_the_current_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file beside memtrend.toml is found, however memtrend was started."""
        (tmp_path / "cellar_memory.py").write_text("class Cellar:\n    write = search = print\n")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
        backend = open_backend(BackendConfig("mine", "cellar_memory:Cellar"))
        assert backend.capabilities == frozenset()
        assert sys.path[-1] == str(tmp_path)  # last: its `store` must not be taken for ours

    @pytest.mark.parametrize(
        ("source", "type", "said"),
        [
            ("", "no_such_memory:Mine", "cannot import no_such_memory: ModuleNotFoundError"),
            (
                "class Other: pass\nx = 1",
                "broken_memory:Mine",
                "broken_memory has no 'Mine'; it has: Other, x",
            ),
            ("import no_such_package", "broken_memory:Mine", "No module named 'no_such_package'"),
            ("def (", "broken_memory:Mine", "cannot import broken_memory: SyntaxError"),
            ("1 / 0", "broken_memory:Mine", "cannot import broken_memory: ZeroDivisionError"),
        ],
    )
    def test_what_cannot_be_found(
        self, source: str, type: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error names the module, what was wrong, and what is there instead."""
        (tmp_path / "broken_memory.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "broken_memory", raising=False)
        with pytest.raises(BackendError, match=said) as raised:
            open_backend(BackendConfig("mine", type))
        assert raised.value.permanent

    def test_an_unknown_type_names_the_known(self) -> None:
        """A type without a colon is one of ours, or a mistake."""
        with pytest.raises(
            BackendError, match=r"unknown type 'weaviate'; known: chroma, dense.*package\.module:Class"
        ):
            open_backend(BackendConfig("mine", "weaviate"))

    @pytest.mark.parametrize(
        ("methods", "said"),
        [
            (["add", "query"], "has no write and no search; its methods: add, query"),
            (["write"], "has no search; its methods: write"),
            (["remember", "recall", "count"], "has no reset; its methods: count, recall, remember"),
            ([], "its methods: none"),
        ],
    )
    def test_missing_verbs_are_named(self, module: ModuleType, methods: list[str], said: str) -> None:
        """What is missing and what was found is said, with the two shapes that are wanted."""
        with pytest.raises(BackendError, match=said) as raised:
            opened(module, type("Mine", (), dict.fromkeys(methods, print)))
        assert raised.value.permanent
        assert "write and search" in str(raised.value)

    @pytest.mark.parametrize("target", [Smallest, OurVerbs])
    def test_wrong_options_are_an_error(self, module: ModuleType, target: type) -> None:
        """An option that the class does not take is told by name, never by value."""
        with pytest.raises(BackendError, match="options path: ") as raised:
            opened(module, target, path="/secret").reset(BOX)
        assert raised.value.permanent
        assert "/secret" not in str(raised.value)


class TestHarness:
    def test_the_smallest_memory_works(self, module: ModuleType) -> None:
        """write, search and count are enough to be asked."""
        backend = planted(opened(module, Smallest))
        assert backend.capabilities == {"count"}
        assert backend.count(BOX) == {"memories": 2}
        [hit] = backend.recall(BOX, "ferry", 5).hits
        assert (hit.text, hit.score) == ("The ferry leaves at 22:30.", None)
        assert hit.id == backend.recall(BOX, "leaves", 5).hits[0].id != ""

    def test_each_namespace_is_a_fresh_instance(self, module: ModuleType) -> None:
        """Nothing of one scenario is seen in another, and a reset starts anew."""
        backend = planted(opened(module, Smallest))
        other = Scope("memtrend-test-2")
        backend.reset(other)
        assert backend.recall(other, "ferry", 5).hits == ()
        backend.reset(BOX)
        assert backend.count(BOX) == {"memories": 0}

    def test_keywords_are_given_where_they_are_named(self, module: ModuleType) -> None:
        """Ids, users and metadata reach a class that asks for them, and ids come back where declared."""
        backend = planted(opened(module, WithKeywords, limit=1))
        assert backend.capabilities == {"ids"}
        [hit] = backend.recall(BOX, "gate", 5).hits
        assert (hit.id, hit.text, hit.score) == ("m-1", "The gate closes at 21:40.", 1.0)
        assert hit.metadata["at"] == "2026-01-02T00:00:00+00:00"
        assert hit.metadata["domain"] == "work"
        assert hit.metadata["user"] == "anna"
        assert backend.recall(Scope(BOX.namespace, "bruno"), "gate", 5).hits == ()

    def test_the_id_is_read_back_from_the_metadata(self, module: ModuleType) -> None:
        """A store with ids of its own keeps the planted one in the metadata it was given."""

        class OwnIds(Smallest):
            def write(self, text: str, metadata: dict[str, Any]) -> None:
                self.texts.append({"id": 7, "text": text, "metadata": metadata})  # type: ignore[arg-type]

            def search(self, query: str, k: int) -> Any:
                return self.texts[:k]

        hits = planted(opened(module, OwnIds)).recall(BOX, "gate", 5).hits
        assert [hit.id for hit in hits] == ["m-1", "m-2"]

    def test_anything_goes_is_no_name(self, module: ModuleType) -> None:
        """`**keywords` is given nothing: what it hands them on to may not take them."""

        class Forwards(Smallest):
            def write(self, text: str, **rest: Any) -> None:
                assert rest == {}
                super().write(text)

        assert planted(opened(module, Forwards)).count(BOX) == {"memories": 2}

    @pytest.mark.parametrize("method", ["reset", "clear"])
    def test_a_store_that_stays_is_emptied(self, module: ModuleType, method: str) -> None:
        """A class that keeps its memories outside of the instance is emptied by its own reset or clear."""

        class Stays(Smallest):
            kept: ClassVar[list[str]] = ["from before"]

            def __init__(self) -> None:
                self.texts = self.kept

        setattr(Stays, method, lambda self: self.kept.clear())
        assert planted(opened(module, Stays)).count(BOX) == {"memories": 2}

    def test_a_store_that_stays_full_is_an_error(self, module: ModuleType) -> None:
        """Without a way to empty it, a store that is not fresh voids the scenario, with the remedy."""

        class Stays(Smallest):
            def __init__(self) -> None:
                self.texts = ["from before"]

        with pytest.raises(
            BackendError, match="holds 1 memories in a fresh namespace: give it a reset"
        ) as raised:
            opened(module, Stays).reset(BOX)
        assert raised.value.permanent

    def test_an_object_is_taken_as_it_is(self, module: ModuleType) -> None:
        """An instance made by the user's own module works, without options."""
        assert planted(opened(module, Smallest())).count(BOX) == {"memories": 2}
        with pytest.raises(BackendError, match="can take no options"):
            opened(module, Smallest(), limit=1).reset(BOX)

    def test_closing_closes_every_instance(self, module: ModuleType) -> None:
        """What was opened for each namespace is given back once."""
        made: list[WithKeywords] = []

        class Remembered(WithKeywords):
            def __init__(self, namespace: str) -> None:
                super().__init__(namespace)
                made.append(self)

        backend = opened(module, Remembered)
        for namespace in ("memtrend-1", "memtrend-2"):
            backend.reset(Scope(namespace))
        backend.close()
        backend.close()
        assert [(box.namespace, box.closed) for box in made] == [("memtrend-1", 1), ("memtrend-2", 1)]

    def test_a_dropped_namespace_keeps_nothing_open(self, module: ModuleType) -> None:
        """An instance is emptied and closed at the end of its scenario, however many there are."""
        told: list[str] = []

        class Told(Smallest):
            def __init__(self) -> None:
                super().__init__()
                told.append("open")

            def reset(self) -> None:
                told.append("reset")

            def close(self) -> None:
                told.append("close")

        backend = opened(module, Told)
        for scenario in range(2):
            for _ in ("its beginning", "its end"):
                backend.reset(Scope(f"memtrend-{scenario}"))
        assert told == ["open", "reset", "reset", "close"] * 2
        assert backend.count(Scope("memtrend-0")) == {"memories": 0}
        backend.reset(Scope("memtrend-1"))
        backend.count(Scope("memtrend-1"))
        backend.close()
        assert told.count("open") == told.count("close") == 4

    def test_settle_waits_for_the_user_s_own(self, module: ModuleType) -> None:
        """A store that indexes later may say when it is ready."""

        class Later(Smallest):
            def settle(self) -> None:
                self.texts.append("settled")

        assert planted(opened(module, Later)).recall(BOX, "settled", 5).hits[0].text == "settled"

    def test_an_unmade_namespace_is_an_error(self, module: ModuleType) -> None:
        """A question before any reset is no empty answer, unless the class says that it is durable."""
        with pytest.raises(BackendError, match="does not exist in this store"):
            opened(module, Smallest).recall(BOX, "gate", 5)
        durable = type("Durable", (Smallest,), {"capabilities": {"durable"}})
        assert opened(module, durable).recall(BOX, "gate", 5).hits == ()

    def test_foreign_namespaces_are_refused(self, module: ModuleType) -> None:
        """Neither shape is ever asked to reset what memtrend did not make."""
        for target in (Smallest, OurVerbs):
            with pytest.raises(BackendError, match="not memtrend's"):
                opened(module, target).reset(Scope("production"))


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
