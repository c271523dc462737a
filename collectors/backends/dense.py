"""Vectors: the configured embedder and exact cosine, no approximate index that could be what is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from collectors.backend import BackendConfig, BackendError, Recall
from collectors.backends.base import Row, SqliteStore, eligible, explained, require_leg, well_formed
from collectors.embedding import Embedder, embedder_versions, open_embedder
from collectors.suite import Scope, digest


class _Matrix(NamedTuple):
    """All that a user has in a namespace: rows, and their unit vectors (n, d)."""

    rows: list[Row]
    vectors: np.ndarray


class Dense(SqliteStore):
    """The nearest memories, however far: a query with a word in it always gets hits while any is eligible."""

    index = "vector"
    legs = ("vector",)
    schema = """
    CREATE TABLE IF NOT EXISTS vector (
        seq INTEGER PRIMARY KEY, box INTEGER NOT NULL, made_by TEXT NOT NULL, floats BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS vector_of_box ON vector (box);
    """

    def __init__(self, config: BackendConfig) -> None:
        self._embedder: Embedder = open_embedder(config.embedder)
        super().__init__(config)
        self._made_by = digest([self._embedder.name, dict(self._embedder.fingerprint)])
        self._matrices: dict[int, _Matrix] = {}
        if not self._embedder.deterministic:
            self.capabilities -= {"deterministic"}

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        asked = self._embedder.embed([well_formed(query)])[0]
        with explained(self._where):
            box = self._box(scope)
            if box is None or not asked.any():
                return Recall(())
            rows, vectors = self._matrix(box)
        # Rounded, because equal vectors may differ in the last bits by where they stand in the matrix.
        scores = (vectors @ asked).round(6).tolist()
        among = [
            (-score, row.id, row) for score, row in zip(scores, rows, strict=True) if eligible(scope, row)
        ]
        return Recall(tuple(row.hit(-negative) for negative, _, row in sorted(among)[: max(k, 0)]))

    def versions(self) -> Mapping[str, str]:
        return {**super().versions(), **embedder_versions(self._embedder)}

    def _encode(self, texts: Sequence[str]) -> Sequence[Any]:
        return [vector.tobytes() for vector in self._embedder.embed(texts)]

    def _index(self, box: int, entries: Iterable[tuple[int, Any]]) -> None:
        self._matrices.pop(box, None)
        self._database.executemany(
            "INSERT INTO vector VALUES (?, ?, ?, ?)",
            [(seq, box, self._made_by, floats) for seq, floats in entries],
        )

    def _unindex(self, box: int, seqs: Sequence[int]) -> None:
        self._matrices.pop(box, None)
        self._database.executemany("DELETE FROM vector WHERE seq = ?", [(seq,) for seq in seqs])

    def _drop(self, box: int) -> None:
        self._matrices.pop(box, None)
        self._database.execute("DELETE FROM vector WHERE box = ?", (box,))

    def _indexed(self, box: int) -> int:
        found: int = self._database.execute("SELECT count(*) FROM vector WHERE box = ?", (box,)).fetchone()[0]
        return found

    def _matrix(self, box: int) -> _Matrix:
        if box not in self._matrices:
            found = self._database.execute(
                "SELECT made_by, floats FROM vector WHERE box = ? ORDER BY seq", (box,)
            )
            stored = found.fetchall()
            if any(made_by != self._made_by for made_by, _ in stored):
                raise BackendError(
                    f"{self._where}: its vectors were made by another embedder than {self._embedder.name}: "
                    "plant again with this one, or configure the other",
                    permanent=True,
                )
            floats = np.frombuffer(b"".join(floats for _, floats in stored), np.float32)
            self._matrices[box] = _Matrix(
                self._rows(box), floats.reshape(len(stored), self._embedder.dimensions)
            )
        return self._matrices[box]
