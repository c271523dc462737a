"""A user's own memory is found, and a harness is put around a smaller one than ours."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from collectors.backend import BackendConfig, BackendError, open_backend
from collectors.suite import Scope
from tests.collectors.backends.own_memories import (
    BOX,
    OurVerbs,
    Smallest,
    WithKeywords,
    module,
    opened,
    planted,
)

__all__ = ["module"]
"""A fixture of the tests here."""


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
