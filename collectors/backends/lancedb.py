"""LanceDB in memtrend's own directory: by vectors, by words, or by both.

Option: `search` (hybrid, vector or fts; the default is hybrid). A namespace is a table, so that what others
planted moves no score of bm25; users, sessions and domains are conditions that go before the search, as the
vendor does where it is not told otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from collectors.backend import BackendConfig, Hit
from collectors.backends.base import ID_KEY, faulty
from collectors.backends.boxes import (
    MARK,
    Box,
    Boxes,
    OwnDirectory,
    Question,
    Row,
    missing_package,
    options_of,
)
from collectors.suite import Scope

PACKAGE = "lancedb==0.40.0"
LEGS = {"hybrid": ("keyword", "vector"), "vector": ("vector",), "fts": ("keyword",)}
"""What can be searched, and the indexes that it takes."""
DISTANCE = "cosine"
WORDS = "text_idx"
"""The word index, as the vendor names it after its column."""
ASKED_AS = {"keyword": "fts", "vector": "vector"}
"""Leg -> search."""
COLUMNS = ("key", ID_KEY, "text", "user", "session", "domain", "metadata")
"""Texts; `metadata` is JSON, with all of the others that come back but the text."""


class LanceDB(Boxes):
    vendor = "lancedb"

    def __init__(self, config: BackendConfig) -> None:
        self._search = options_of(config, ("search",)).get("search", "hybrid")
        if self._search not in LEGS:
            raise faulty(config, f"unknown search {self._search!r}; known: {', '.join(sorted(LEGS))}")
        self.legs = self.indexes = LEGS[self._search]
        # Without an index of its own a vector is compared with all; but words that weigh the same come in
        # any order.
        super().__init__(config, own=True, exact=self._search == "vector")
        self._lancedb, self._arrow = _lancedb()
        self._directory = OwnDirectory(config)
        with self._explained(f"configuration of backend {config.name}"):
            self._database = self._lancedb.connect(str(self._directory.path))

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        return True

    def versions(self) -> Mapping[str, str]:
        return {
            "lancedb": version("lancedb"),
            "search": self._search,
            "distance": DISTANCE,
            **self._embedder.versions,
        }

    def close(self) -> None:
        self._directory.close()

    def _box(self, namespace: str) -> Box | None:
        try:
            return _Table(self._database.open_table(namespace), self._search)
        except ValueError as error:
            if "was not found" in str(error):
                return None
            raise

    def _make(self, namespace: str) -> Box:
        text, number = self._arrow.string(), self._arrow.float32()
        vector = self._arrow.list_(number, self._embedder.dimensions)
        columns = [*((name, text) for name in COLUMNS), ("vector", vector)]
        schema = self._arrow.schema(columns, metadata={MARK: self._mark})
        table = self._database.create_table(namespace, schema=schema)
        if "keyword" in self.legs:
            table.create_index("text", config=self._lancedb.index.FTS())
        return _Table(table, self._search)

    def _drop(self, namespace: str) -> None:
        self._database.drop_table(namespace)

    def _is_permanent(self, error: Exception) -> bool:
        return isinstance(error, ValueError)


class _Table:
    def __init__(self, table: Any, search: str) -> None:
        self._table, self._search = table, search
        mark = (table.schema.metadata or {}).get(MARK.encode())
        self.mark = mark.decode() if mark else None

    def strangers(self) -> int:
        """Who made the table made its columns, and without an id no row fits in."""
        return self._counted(f"{ID_KEY} IS NULL") if self.mark else 0

    def put(self, rows: Sequence[Row]) -> None:
        """The word index takes in what is new when the table is optimized, and not before."""
        merged = self._table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
        merged.execute([_columns(row) for row in rows])
        self._table.optimize()

    def holds(self, key: str) -> bool:
        return self._counted(_among("key", [key])) > 0

    def search(self, question: Question) -> list[Hit]:
        asked = ASKED_AS[question.leg] if question.leg else self._search
        built = {"vector": self._by_vector, "fts": self._by_words, "hybrid": self._by_both}[asked](question)
        rows = built.where(_where(question.scope)).limit(question.k).to_list()
        return [_hit(row, asked) for row in rows]

    def edit(self, key: str, text: str, vector: list[float]) -> None:
        self._table.update(where=_among("key", [key]), values={"text": text, "vector": vector})
        self._table.optimize()

    def delete(self, keys: Sequence[str]) -> None:
        self._table.delete(_among("key", keys))

    def delete_user(self, user: str) -> None:
        self._table.delete(_among("user", [user]))

    def count(self) -> Mapping[str, int]:
        counted = {"vector": self._counted, "keyword": self._indexed}
        return {leg: counted[leg]() for leg in LEGS[self._search]}

    def _by_vector(self, question: Question) -> Any:
        return self._table.search(question.vector).distance_type(DISTANCE)

    def _by_words(self, question: Question) -> Any:
        return self._table.search(question.text, query_type="fts")

    def _by_both(self, question: Question) -> Any:
        asked = self._table.search(query_type="hybrid").vector(question.vector).text(question.text)
        return asked.distance_type(DISTANCE)

    def _counted(self, condition: str | None = None) -> int:
        number: int = self._table.count_rows(condition)
        return number

    def _indexed(self) -> int:
        number: int = self._table.index_stats(WORDS).num_indexed_rows
        return number


def _columns(row: Row) -> dict[str, Any]:
    known = {name: row.metadata.get(name) for name in (ID_KEY, "user", "session", "domain")}
    metadata = {name: value for name, value in row.metadata.items() if name != ID_KEY}
    return {
        "key": row.key,
        "text": row.text,
        "vector": row.vector,
        "metadata": json.dumps(metadata, default=str),
        **known,
    }


def _hit(row: Mapping[str, Any], asked: str) -> Hit:
    return Hit(row[ID_KEY], row["text"], SCORES[asked](row), json.loads(row["metadata"]))


SCORES: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "vector": lambda row: 1 - row["_distance"],
    "fts": lambda row: row["_score"],
    "hybrid": lambda row: row["_relevance_score"],
}
"""Search -> what the vendor ranks by, higher is better: cosine likeness, bm25, reciprocal ranks."""


def _where(scope: Scope) -> str:
    asked = [_among("user", [scope.user])]
    asked += [_among("session", [scope.session])] if scope.session is not None else []
    asked += [_among("domain", scope.domains)] if scope.domains else []
    return " AND ".join(asked)


def _among(column: str, values: Sequence[str]) -> str:
    """A condition in the vendor's SQL, in which a quote within a text is doubled."""
    texts = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"`{column}` IN ({texts})"


def _lancedb() -> Any:
    try:
        import lancedb
        import lancedb.index
        import pyarrow
    except ImportError as error:
        raise missing_package(PACKAGE) from error
    return lancedb, pyarrow
