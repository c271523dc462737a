"""Keywords: SQLite FTS5, ranked by bm25.

One full-text table for each namespace and user, because bm25's statistics are those of its table: in a
common one, what other users planted would move this user's scores.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from collectors.backend import Recall
from collectors.backends.base import COLUMNS, Row, SqliteStore, explained, require_leg
from collectors.suite import Scope

WORD = re.compile(r"[^\W_]+")


class Keyword(SqliteStore):
    """Hits share at least one word with the query; case and accents do not count."""

    index = "keyword"
    legs = ("keyword",)

    def recall(self, scope: Scope, query: str, k: int, leg: str | None = None) -> Recall:
        require_leg(self, leg)
        wanted = expression(query)
        with explained(self._where):
            box = self._box(scope)
            if box is None or not wanted:
                return Recall(())
            conditions, values = _conditions(scope)
            found = self._database.execute(
                f"SELECT {COLUMNS}, -bm25(text_{box}) AS score FROM text_{box} "
                f"CROSS JOIN memory ON memory.seq = text_{box}.rowid "
                f"WHERE text_{box} MATCH ?{conditions} ORDER BY score DESC, memory.id LIMIT ?",
                (wanted, *values, max(k, 0)),
            )
            return Recall(tuple(Row(*columns).hit(score) for *columns, score in found))

    def _create(self, box: int) -> None:
        self._database.execute(
            f"CREATE VIRTUAL TABLE text_{box} USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2')"
        )

    def _index(self, box: int, entries: Iterable[tuple[int, Any]]) -> None:
        self._database.executemany(f"INSERT INTO text_{box} (rowid, text) VALUES (?, ?)", entries)

    def _unindex(self, box: int, seqs: Sequence[int]) -> None:
        self._database.executemany(f"DELETE FROM text_{box} WHERE rowid = ?", [(seq,) for seq in seqs])

    def _drop(self, box: int) -> None:
        self._database.execute(f"DROP TABLE text_{box}")

    def _indexed(self, box: int) -> int:
        """Of which the memory is there too: what an index alone holds cannot come back."""
        counted = f"SELECT count(*) FROM text_{box} JOIN memory ON memory.seq = text_{box}.rowid"
        found: int = self._database.execute(counted).fetchone()[0]
        return found


def expression(query: str) -> str:
    """The FTS5 query for any text, "" when it holds no word: each word, and as a phrase the words that no
    blank parts. So PAYGW_US_READ_MS is found by one of its parts, and ranks first when asked for whole."""
    terms: dict[str, str] = {}
    # NFC, because \w takes an accent that stands alone for a gap.
    for chunk in unicodedata.normalize("NFC", query).split():
        words = WORD.findall(chunk)
        phrases = [" ".join(words)] if len(words) > 1 else []
        terms.update({term.lower(): f'"{term}"' for term in phrases + words})
    return " OR ".join(terms.values())


def _conditions(scope: Scope) -> tuple[str, list[str]]:
    """SQL that lets only what is asked about be ranked, with its values."""
    domains = [json.dumps(scope.domains)] if scope.domains else []
    sessions = [scope.session] if scope.session is not None else []
    sql = " AND memory.domain IN (SELECT value FROM json_each(?))" * len(domains)
    return sql + " AND memory.session = ?" * len(sessions), domains + sessions
