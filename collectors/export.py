"""Case results as CSV or Parquet: ids, scores and times, no text of a memory, question or answer."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from collectors.arguments import Refused
from store import queries
from store.database import Database

WHOLE = ("run", "trial", "attempts", "returned_n")
TEXT = (
    "run_status", "suite", "suite_version", "backend", "case", "case_hash", "tags", "status",
    "failure", "licence", "citation",
)  # fmt: skip
"""Columns of whole numbers and of texts; all others are numbers."""
GROUP = 50_000
"""Rows in memory at a time."""


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


def write_parquet(
    db: Database,
    path: Path,
    run_ids: Sequence[int] | None = None,
    suites: Sequence[str] | None = None,
    backends: Sequence[str] | None = None,
) -> int:
    """The same rows and columns as Parquet, with types; null does not apply. The file is there once it is
    whole: one that was cut short could be read, and would lack runs. Raises `Refused` for a file that cannot
    be written."""
    import pyarrow as pa  # a third of a second that no other command needs
    from pyarrow import parquet

    schema = pa.schema([(name, _type(pa, name)) for name in queries.EXPORTED])
    rows = queries.export_cases(db, ids=run_ids, suites=suites, backends=backends)
    written, arriving = 0, path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with parquet.ParquetWriter(arriving, schema, compression="zstd") as writer:
            for group in _groups(rows):
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
                written += len(group)
        arriving.replace(path)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        arriving.unlink(missing_ok=True)
    return written


def _type(pa: Any, column: str) -> Any:
    if column in WHOLE:
        return pa.int64()
    if column == "started_at":
        return pa.timestamp("s", tz="UTC")
    return pa.string() if column in TEXT else pa.float64()


def _groups(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while group := list(islice(rows, GROUP)):
        yield [{**row, "started_at": datetime.fromisoformat(row["started_at"])} for row in group]
