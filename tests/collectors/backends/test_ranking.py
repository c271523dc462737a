"""How each embedded store ranks, and what it keeps out of the ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import embedding
from collectors.backend import Backend, BackendConfig, BackendError, Hit, Recall, open_backend
from collectors.backends.hybrid import Hybrid, fused
from collectors.backends.keyword import expression
from collectors.embedding import TextEmbedder, open_embedder
from collectors.suite import Memory, Scope

BOX = Scope("memtrend-test-1")


def store(type: str, *texts: str, **config: Any) -> Backend:
    backend = open_backend(BackendConfig(type, type, **config))
    backend.reset(BOX)
    backend.remember(BOX, [Memory(f"m-{n}", text) for n, text in enumerate(texts)])
    return backend


def ids(backend: Backend, query: str, k: int = 5, scope: Scope = BOX) -> list[str]:
    return [hit.id for hit in backend.recall(scope, query, k).hits]


class TestKeyword:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("PAYGW_US_READ_MS", ["m-1", "m-0", "m-2"]),
            ("paygw_us_read_ms?", ["m-1", "m-0", "m-2"]),
            ("What was INC-4471 about?", ["m-3"]),
            ("4471", ["m-3"]),
            ("gateway", ["m-2"]),
            ("Malmö", ["m-4"]),
            ("MALMO", ["m-4"]),
            ("malmo\u0308", ["m-4"]),
            ("don't", ["m-4"]),
        ],
    )
    def test_finds_identifiers_and_their_parts(self, query: str, expected: list[str]) -> None:
        """A whole identifier ranks above its sister, a part finds both; case and accents do not count."""
        backend = store(
            "keyword",
            "PAYGW_EU_READ_MS is 8000.",
            "PAYGW_US_READ_MS is 12000.",
            "The PAYGW gateway has a README.",
            "INC-4471: certificates expired.",
            "Don't send parcels to Malmö.",
        )
        assert ids(backend, query) == expected

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("", ""),
            ("?! \x00 …", ""),
            ("Where is it?", '"Where" OR "is" OR "it"'),
            ("the The THE", '"THE"'),
            ("a_b-c", '"a b c" OR "a" OR "b" OR "c"'),
            ('x" OR text:* NEAR(', '"x" OR "OR" OR "text" OR "NEAR"'),
        ],
    )
    def test_the_query_is_words_and_phrases(self, query: str, expected: str) -> None:
        """Each word once, and what stands together as a phrase; nothing else reaches the query language."""
        assert expression(query) == expected

    def test_scores_do_not_know_other_users(self) -> None:
        """What others planted moves no score: each user has statistics of their own."""
        alone = store("keyword", "The gate is open.", "The ferry is late.")
        shared = store("keyword", "The gate is open.", "The ferry is late.")
        crowd = [Memory(f"x-{n}", "gate gate gate") for n in range(50)]
        shared.remember(replace(BOX, user="other"), crowd)
        assert alone.recall(BOX, "gate", 5) == shared.recall(BOX, "gate", 5)


class TestDense:
    def test_is_exact(self) -> None:
        """The order is that of the cosines, all of them computed."""
        texts = [
            f"{what} number {n} lies in the harbour" for n in range(20) for what in ("Boat", "Crate", "Rope")
        ]
        embedder = open_embedder("wordllama")
        cosines = embedder.embed(texts) @ embedder.embed(["Which crate lies there?"])[0]
        hits = store("dense", *texts).recall(BOX, "Which crate lies there?", 60).hits
        assert [hit.score for hit in hits] == sorted((float(c) for c in cosines.round(6)), reverse=True)
        assert hits[0].id == f"m-{np.argmax(cosines)}"

    def test_equal_texts_have_equal_scores(self) -> None:
        """Where a text stands in the matrix does not decide a tie; its id does."""
        texts = ["The gate is open."] * 37 + ["Something else entirely."]
        assert ids(store("dense", *texts), "gate", 37) == sorted(f"m-{n}" for n in range(37))

    def test_vectors_of_another_embedder_are_refused(
        self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A store planted with one embedder is not asked with another: the cosines would mean nothing."""

        class Other(TextEmbedder):
            name, dimensions, deterministic, fingerprint = "other", 256, True, {"model": "other"}

            def vectors(self, texts: Sequence[str]) -> np.ndarray:
                return np.ones((len(texts), 256))

        store("dense", "The gate is open.", directory=tmp_path).close()
        monkeypatch.setitem(embedding.LOCAL, "other", Other)
        backend = open_backend(BackendConfig("dense", "dense", embedder="other", directory=tmp_path))
        with pytest.raises(BackendError, match="made by another embedder than other") as raised:
            backend.recall(BOX, "gate", 5)
        assert raised.value.permanent
        backend.reset(BOX)
        backend.remember(BOX, [Memory("m-0", "The gate is open.")])
        assert ids(backend, "gate") == ["m-0"]
        backend.close()

    def test_only_a_deterministic_embedder_makes_it_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The store does not promise what its embedder cannot keep."""

        class Wavering(TextEmbedder):
            name, dimensions, deterministic, fingerprint = "wavering", 2, False, {}

            def vectors(self, texts: Sequence[str]) -> np.ndarray:
                return np.ones((len(texts), 2))

        monkeypatch.setitem(embedding.LOCAL, "wavering", Wavering)
        for type in ("dense", "hybrid"):
            assert "deterministic" not in store(type, embedder="wavering").capabilities


@pytest.mark.parametrize("type", ["keyword", "dense", "hybrid"])
def test_only_what_is_eligible_is_ranked(type: str) -> None:
    """With k = 1 a better memory of another domain or session does not take the place of the right one."""
    backend = store(type)
    best = [Memory(f"m-{n}", "The gate closes at ten.", domain="work", session="monday") for n in range(60)]
    right = Memory("m-right", "A gate.", domain="home", session="friday")
    backend.remember(BOX, [*best, right])
    for scope in (replace(BOX, domains=("home",)), replace(BOX, session="friday")):
        assert ids(backend, "When does the gate close at ten?", 1, scope) == ["m-right"]


class TestHybrid:
    def test_fuses_by_reciprocal_rank(self) -> None:
        """A memory scores 1 / (60 + rank) in each list that holds it; ties go by id."""
        first = [Hit("c", "c"), Hit("a", "a"), Hit("b", "b")]
        second = [Hit("a", "a"), Hit("d", "d")]
        expected = {"a": 1 / 62 + 1 / 61, "c": 1 / 61, "d": 1 / 62, "b": 1 / 63}
        found = fused([first, second])
        assert [hit.id for hit in found] == list(expected)
        assert [hit.score for hit in found] == pytest.approx(list(expected.values()))
        assert [hit.id for hit in fused([[Hit("z", "z")], [Hit("y", "y")]])] == ["y", "z"]

    @given(st.lists(st.permutations("abcdef"), min_size=1, max_size=2))
    def test_the_order_of_the_lists_is_nothing(self, rankings: list[list[str]]) -> None:
        """Fusing is symmetric, and loses and doubles nothing."""
        lists = [[Hit(id, id) for id in ranking] for ranking in rankings]
        there, back = fused(lists), fused(lists[::-1])
        assert [hit.id for hit in there] == [hit.id for hit in back]
        assert sorted(hit.id for hit in there) == list("abcdef")

    def test_looks_deeper_than_k(self) -> None:
        """With k = 1 the one that is good in both lists wins over the best of either."""
        backend = store("hybrid")
        assert isinstance(backend, Hybrid)
        for leg, first in (("keyword", "x"), ("vector", "y")):
            ranking = [Hit(id, id) for id in (first, "both")]
            answer = SimpleNamespace(
                recall=lambda scope, query, k, ranking=ranking: Recall(tuple(ranking[:k]))
            )
            backend.indexes[leg] = answer  # type: ignore[assignment]
        assert ids(backend, "query", 1) == ["both"]

    def test_a_leg_can_be_killed(self) -> None:
        """A wrapper put around one index is what that index answers from then on."""
        backend = store("hybrid", "The gate closes at ten.", "Piano")
        assert isinstance(backend, Hybrid)

        class Dead:
            def __init__(self, index: Backend) -> None:
                self.index = index

            def __getattr__(self, name: str) -> Any:
                return getattr(self.index, name)

            def recall(self, *_: Any) -> Recall:
                return Recall(())

        backend.indexes["keyword"] = Dead(backend.indexes["keyword"])  # type: ignore[assignment]
        assert backend.recall(BOX, "gate", 5, "keyword").hits == ()
        assert ids(backend, "gate")[0] == "m-0"
        backend.indexes["vector"] = Dead(backend.indexes["vector"])  # type: ignore[assignment]
        assert ids(backend, "gate") == []


class TestEverything:
    def test_newest_first_and_all_of_it(self) -> None:
        """By event time whatever its zone, then by planting; what has no time is oldest; k is not heeded."""
        at = [
            None,
            datetime(2026, 3, 1, 12, tzinfo=UTC),
            datetime(2026, 3, 1, 12, 30, tzinfo=timezone(timedelta(hours=5))),
            datetime(2026, 3, 1, 12, tzinfo=UTC),
            None,
        ]
        backend = store("everything")
        backend.remember(BOX, [Memory(f"m-{n}", "text", at=when) for n, when in enumerate(at)])
        assert ids(backend, "anything", 1) == ["m-3", "m-1", "m-2", "m-4", "m-0"]


@pytest.fixture(autouse=True)
def _embedders_forgotten() -> Iterator[None]:
    """Embedders that a test registered are not kept for the next one."""
    before = dict(embedding._opened)
    yield
    embedding._opened.clear()
    embedding._opened.update(before)
