"""lancedb: by vectors, by words, or by both, each with its own score and its own count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.backend import BackendConfig, BackendError, Isolation
from collectors.backends.lancedb import PACKAGE, LanceDB
from tests.collectors.backends.boxes import (
    ASKED,
    BOX,
    FERRY,
    ODD_METADATA,
    STORM,
    VIOLIN,
    Beside,
    Open,
    found,
    opening,
    plant,
    ranks_as_exact_cosine,
)

ISOLATION = Isolation(PACKAGE)
FOREIGN = """
import sys, lancedb
database, name = lancedb.connect(sys.argv[1]), sys.argv[2]
if name in database.list_tables().tables:
    database.open_table(name).add([{"key": "1", "text": "theirs", "vector": [1.0] * 256}])
else:
    database.create_table(name, [{"text": "theirs", "vector": [1.0] * 256}])
"""
LEFT = """
import sys, lancedb
database = lancedb.connect(sys.argv[1])
print({name: database.open_table(name).count_rows() for name in database.list_tables().tables})
"""

BESIDE = Beside(ISOLATION, FOREIGN, LEFT)


@pytest.fixture
def open_lancedb() -> Iterator[Open]:
    yield from opening("lancedb", ISOLATION)


@pytest.mark.backends
class TestSearch:
    def test_by_vectors_it_is_exact_cosine(self, open_lancedb: Open) -> None:
        """At the same embedder it ranks and scores as memtrend's own exact search."""
        backend = open_lancedb(search="vector")
        ranks_as_exact_cosine(backend)
        assert found(backend, " ") == ()

    def test_by_words_only_what_has_them_is_found(self, open_lancedb: Open) -> None:
        """The score is bm25, above zero and without an upper end; no word, no hit."""
        backend = open_lancedb(search="fts")
        plant(backend, BOX, FERRY, VIOLIN, STORM)
        (hit,) = found(backend, "thirty")
        assert hit.id == "m-1"
        assert hit.score is not None
        assert hit.score > 0
        assert found(backend, "zeppelin") == ()
        assert found(backend, " ") == ()

    def test_by_both_is_the_default_and_fuses_ranks(self, open_lancedb: Open) -> None:
        """What both put first has the score 2 / 61 of reciprocal ranks, whatever either likened it to."""
        backend = open_lancedb()
        plant(backend, BOX, FERRY, VIOLIN, STORM)
        assert backend.versions()["search"] == "hybrid"
        best = found(backend)[0]
        assert best.id == "m-0"
        assert best.score == pytest.approx(2 / 61, abs=1e-6)

    def test_legs_answer_alone(self, open_lancedb: Open) -> None:
        """Each leg of the two gives what it would give where it is the only one."""
        both = open_lancedb()
        plant(both, BOX, FERRY, VIOLIN, STORM)
        for leg, search in (("vector", "vector"), ("keyword", "fts")):
            alone = open_lancedb(search=search)
            plant(alone, BOX, FERRY, VIOLIN, STORM)
            assert found(both, leg=leg) == found(alone, leg=leg) == found(alone)

    def test_a_question_without_words_is_the_vendor_s_error(self, open_lancedb: Open) -> None:
        """Both searches together refuse an empty text, and that is told as the vendor tells it."""
        backend = open_lancedb()
        plant(backend, BOX, FERRY)
        with pytest.raises(BackendError, match="lancedb recall: Text query must be provided") as raised:
            found(backend, "")
        assert raised.value.permanent

    def test_users_weigh_in_each_other_s_words(self, open_lancedb: Open) -> None:
        """One table holds a namespace, as one holds all users of an agent: what another user planted is not
        returned, but it moves the weight of a word."""
        backend = open_lancedb(search="fts")
        plant(backend, BOX, FERRY, VIOLIN)
        (alone,) = found(backend, "ferry")
        plant(backend, type(BOX)(BOX.namespace, "bruno"), FERRY, FERRY, FERRY)
        (among,) = found(backend, "ferry")
        assert among.text == FERRY
        assert among.score != alone.score


@pytest.mark.backends
class TestRows:
    def test_metadata_comes_back_equal(self, open_lancedb: Open) -> None:
        """It travels as JSON beside the columns that are searched by, and survives a change of the text."""
        backend = open_lancedb()
        plant(backend, BOX, FERRY, metadata=ODD_METADATA)
        backend.amend(BOX, "m-0", VIOLIN)
        (hit,) = found(backend, "violin")
        assert hit.text == VIOLIN
        assert dict(hit.metadata) == {**ODD_METADATA, "role": "user", "user": "anna"}

    def test_each_index_is_counted_as_it_stands(self, open_lancedb: Open) -> None:
        """The words' number is that of its index, and follows what is planted, changed and forgotten."""
        backend = open_lancedb()
        plant(backend, BOX, FERRY, VIOLIN, STORM)
        backend.amend(BOX, "m-0", VIOLIN)
        backend.forget(BOX, ["m-1"])
        backend.forget(BOX, [])
        assert backend.count(BOX) == {"keyword": 2, "vector": 2}

    def test_a_quote_is_a_quote(self, open_lancedb: Open) -> None:
        """In the vendor's SQL no name ends its text early, whatever it holds."""
        backend = open_lancedb()
        plant(backend, BOX, FERRY, domain="it's")
        for domain, number in (("it's", 1), ("it''s", 0), ("x') OR ('1'='1", 0), ("it\\", 0)):
            asked = type(BOX)(BOX.namespace, BOX.user, (domain,))
            assert len(backend.recall(asked, ASKED, 5).hits) == number, domain

    @pytest.mark.parametrize("begun", [False, True], ids=["table", "row"])
    def test_what_others_made_is_left_alone(self, open_lancedb: Open, tmp_path: Path, begun: bool) -> None:
        """A table that memtrend did not make, or that holds a row of somebody else's, is not reset."""
        BESIDE.is_left_alone(open_lancedb, tmp_path, begun)

    def test_a_reset_leaves_no_table(self, open_lancedb: Open, tmp_path: Path) -> None:
        """A namespace that is dropped is gone from the disk, too."""
        BESIDE.is_left_nothing(open_lancedb, tmp_path)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"search": "words"}, "unknown search 'words'; known: fts, hybrid, vector"),
            ({"config": {"uri": "db://ours"}}, "unknown option 'config'; known: search"),
        ],
    )
    def test_wrong_ones_are_told(self, options: dict[str, Any], said: str) -> None:
        """A fault in the section stops before anything is opened, and names what is known."""
        with pytest.raises(BackendError, match=said) as raised:
            LanceDB(BackendConfig("ours", "lancedb", options))
        assert raised.value.permanent

    def test_without_the_package_it_says_what_to_add(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing SDK is told with the line that brings it."""
        monkeypatch.setitem(sys.modules, "lancedb", None)
        with pytest.raises(BackendError, match=f'add package = "{PACKAGE}"') as raised:
            LanceDB(BackendConfig("ours", "lancedb"))
        assert raised.value.permanent
