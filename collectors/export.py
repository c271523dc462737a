"""Case results as CSV: ids, scores and times, no text of a memory, question or answer."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from store import queries
from store.database import Database


def write_csv(
    db: Database,
    file: TextIO,
    run_ids: Sequence[int] | None = None,
    suites: Sequence[str] | None = None,
    backends: Sequence[str] | None = None,
) -> int:
    """Write one row for each case and trial, and return how many. An empty cell does not apply."""
    writer = csv.DictWriter(file, queries.EXPORTED)
    writer.writeheader()
    written = 0
    for row in queries.export_cases(db, ids=run_ids, suites=suites, backends=backends):
        writer.writerow(row)
        written += 1
    return written
