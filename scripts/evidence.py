"""What real releases do: run the shipped suites on each and print the tables of docs/backends.md.

`python -m scripts.evidence [--folder F] [--tables-only]`: the record stays in the folder, where a second call
adds what is missing. A quarter of an hour on two cores, once the environments are made.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from collectors.suite import SHIPPED, load
from store import queries
from store.database import Database, open_database
from store.queries import CaseRow, RunRow
from tests.postgres import server

Backends = Mapping[str, Mapping[str, Any]]
Found = Mapping[tuple[str, str], RunRow]

MEM0 = ("0.1.118", "1.0.0", "1.0.3", "1.0.6", "1.0.11", "2.0.0", "2.0.20", "2.2.1")
FLOORS = ("nothing", "everything", "keyword", "dense", "hybrid")
GOLDEN = (
    *("mem0-0.1.118", "mem0-1.0.11", "mem0-2.2.1", "langgraph-memory", "langgraph-sqlite"),
    *("langgraph-postgres", "chroma", "qdrant", "lancedb", *FLOORS),
)
EVERYWHERE = ("contract", "smoke")
TELLING = {
    "contract-forget-one-user/2": "another user's memory after one was forgotten",
    "contract-forget-user-of-many/1": "the 104 memories of a user who was forgotten",
    "contract-metadata-after-amend": "metadata after an amendment",
    "contract-as-many-as-asked": "as many as asked, though far",
    "contract-domains-of-several": "several domains asked",
    "contract-user-name-prefix": "a user whose name begins another's",
}
"""Cases that known faults lose."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--folder", type=Path, default=Path("evidence"), help="where the record is kept")
    options.add_argument("--tables-only", action="store_true", help="run nothing, print what is there")
    asked = options.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if not asked.tables_only:
        with server() as postgres:
            run_all(asked.folder, configured(postgres.url))
    print_tables(asked.folder / "memtrend.db", configured(""))


def run_all(folder: Path, backends: Backends) -> None:
    (folder / "memtrend.toml").write_text(toml(backends), encoding="utf-8")
    for suite in (*EVERYWHERE, "golden"):
        for backend in backends:
            if suite in EVERYWHERE or backend in GOLDEN:
                run(folder, suite, backend)


def configured(postgres: str) -> dict[str, dict[str, Any]]:
    rows = {f"mem0-{release}": {"type": "mem0", "package": f"mem0ai=={release}"} for release in MEM0}
    rows["langgraph-memory"] = {"type": "langgraph", "package": "langgraph==1.2.24"}
    for release in ("3.1.2", "3.1.0"):
        name = "langgraph-sqlite" + ("" if release == "3.1.2" else f"-{release}")
        rows[name] = graph("sqlite", release, python="/usr/bin/python3")
    for release in ("3.2.0", "3.1.0"):
        name = "langgraph-postgres" + ("" if release == "3.2.0" else f"-{release}")
        rows[name] = graph("postgres", release, "psycopg[binary]", url=postgres)
    rows["langmem"] = {"type": "langmem", "package": "langmem==0.0.30"}
    rows["chroma"] = {"type": "chroma", "package": "chromadb==1.5.9"}
    rows["qdrant"] = {"type": "qdrant", "package": "qdrant-client==1.20.0"}
    rows["lancedb"] = {"type": "lancedb", "package": "lancedb==0.40.0"}
    return {**rows, **{name: {"type": name} for name in FLOORS}}


def graph(store: str, release: str, *extra: str, **options: str) -> dict[str, Any]:
    package = f"langgraph-checkpoint-{store}=={release}"
    return {"type": "langgraph", "store": store, "package": package,
            "with": ["langgraph==1.2.24", *extra], **options}  # fmt: skip


def toml(backends: Backends) -> str:
    lines = []
    for name, options in backends.items():
        lines += [f'[backends."{name}"]', *(f"{key} = {json.dumps(value)}" for key, value in options.items())]
    return "\n".join(lines) + "\n"


def run(folder: Path, suite: str, backend: str) -> None:
    if (folder / "memtrend.db").exists() and newest(folder / "memtrend.db", suite, backend):
        return
    memtrend = Path(sys.executable).parent / "memtrend"
    subprocess.run([memtrend, "run", "--suite", suite, "--backend", backend], cwd=folder, check=False)


@cache
def version(suite: str) -> str:
    """Of the suite as it is shipped now: a run of another one tells of other questions."""
    return load(SHIPPED[suite]).version


def newest(record: Path, suite: str, backend: str) -> RunRow | None:
    db = open_database(f"sqlite:///{record}")
    try:
        found = queries.runs(db, suites=[suite], backends=[backend], statuses=["whole"], limit=1)
        return found[0] if found and found[0].suite_version == version(suite) else None
    finally:
        db.close()


# Tables


def print_tables(record: Path, backends: Backends) -> None:
    found = {
        (suite, backend): run
        for suite in (*EVERYWHERE, "golden")
        for backend in backends
        if (run := newest(record, suite, backend))
    }
    db = open_database(f"sqlite:///{record}")
    tables = (summary(found, backends), faults(db, found, backends), by_tag(db, found, backends))
    print("\n\n".join("\n".join(table) for table in tables))
    db.close()


def summary(found: Found, backends: Backends) -> Iterator[str]:
    yield "| backend | `contract` | `smoke` | `golden` | hits returned | plants a second | `golden` took |"
    yield "|---|---|---|---|---|---|---|"
    for backend in backends:
        runs = [found.get((suite, backend)) for suite in ("contract", "smoke", "golden")]
        last = runs[2] or runs[0]
        if last:
            shares = " | ".join(share(run) for run in runs)
            took = seconds(runs[2]) if runs[2] else "–"
            yield f"| {backend} | {shares} | {mean(last, 'returned_n', 2)} | {pace(last)} | {took} |"


def share(run: RunRow | None) -> str:
    return "–" if run is None else f"{100 * run.metrics['pass'].mean:.1f} % of {run.metrics['pass'].n}"


def mean(run: RunRow, metric: str, digits: int) -> str:
    return f"{run.metrics[metric].mean:.{digits}f}" if metric in run.metrics else "–"


def pace(run: RunRow) -> str:
    return f"{1000 / run.metrics['plant_ms'].mean:.0f}" if "plant_ms" in run.metrics else "–"


def seconds(run: RunRow) -> str:
    return f"{(run.finished_at - run.started_at).total_seconds():.0f} s"


def faults(db: Database, found: Found, backends: Backends) -> Iterator[str]:
    """The cases that known faults lose; what is no case for a backend is left blank."""
    yield f"| `contract` | {' | '.join(TELLING.values())} |"
    yield "|---|" + "---|" * len(TELLING)
    for backend in backends:
        if run := found.get(("contract", backend)):
            rows = {row.case: row for row in queries.run_cases(db, run.id, with_hits=False)}
            yield f"| {backend} | {' | '.join(said(rows.get(case)) for case in TELLING)} |"


def said(row: CaseRow | None) -> str:
    if row is None or row.status == "skipped":
        return ""
    if row.status == "error":
        return "**error**"
    return "passes" if row.passed else f"**{row.failure}**"


def by_tag(db: Database, found: Found, backends: Backends) -> Iterator[str]:
    shown = [backend for backend in backends if ("golden", backend) in found]
    tags = {
        backend: {
            row.tag: row for row in queries.run_tags(db, found["golden", backend].id) if row.metric == "pass"
        }
        for backend in shown
    }
    yield f"| `golden` | n | {' | '.join(shown)} |"
    yield "|---|---|" + "---|" * len(shown)
    for tag in sorted({tag for rows in tags.values() for tag in rows}):
        cells = [rows.get(tag) for rows in tags.values()]
        n = max(row.n for row in cells if row)
        yield f"| {tag} | {n} | {' | '.join(f'{100 * row.mean:.0f}' if row else '' for row in cells)} |"


if __name__ == "__main__":
    main()
