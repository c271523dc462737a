"""What a large record takes to be asked: five million case results, a year of nights on 15 backends.

Every figure is of the function that a page or the runner calls. Beside it stands, in the same process over
the same file, what one would have written instead. A page's figure is all that it asks the record for when
it is drawn for the first time.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import argparse
import gc
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlmodel import Session, select

from benchmarks.figures import closing, year
from benchmarks.figures.times import Times, load, seconds, timed
from benchmarks.measure import Bar, parser, tell
from dashboard.server import SELDOM
from store import models as m
from store import queries
from store.database import MIGRATIONS, Database, open_database
from store.metrics import METRICS
from store.models.runs import CaseResult, Detail, Score
from store.models.suites import Case

SIX = ("pass", "recall@k", "precision@k", "mrr", "unwanted", "recall_ms")
SUITE, LARGEST, CASE = "golden", "mined", "item-0001"
MAX_MS = {"trends": 50, "run_cases": 5, "case_history": 10, "close_run": 100, "open": 50}
MAX_PAGE_S = 1.0


class Figure(NamedTuple):
    """`other`: seconds of what one would have written instead, and what that is; None where nothing is."""

    name: str
    times: Times
    other: tuple[str, float] | None

    @property
    def told(self) -> str:
        text = f"{self.name}: {self.times.told}"
        if self.other:
            what, took = self.other
            text += f"; {what}: {1000 * took:.1f} ms, {1000 * took / self.times.median:.1f} x"
        return text


def main() -> int:
    given = parser(__doc__)
    add_size(given)
    given.add_argument("--postgres", action="store_true", help="on a PostgreSQL server started for it")
    given.add_argument("--times", type=int, default=30, help="calls of each question")
    arguments = given.parse_args()
    gc.set_threshold(SELDOM)  # as the dashboard's server does, which asks all this
    size = size_of(arguments)
    with _postgres(size) if arguments.postgres else made(arguments.record, size) as (url, path):
        lines, bars = _measured(url, path, arguments.times)
    return tell(arguments.json, lines, bars)


def add_size(given: argparse.ArgumentParser) -> None:
    given.add_argument("--record", type=Path, help="file of the record, made unless it is there")
    given.add_argument("--nights", type=int, default=year.Size().nights)
    given.add_argument("--backends", type=int, default=year.Size().backends)
    given.add_argument("--cases", type=int, default=year.Size().cases, help="of a night, in three suites")


def size_of(arguments: argparse.Namespace) -> year.Size:
    return year.Size(arguments.nights, arguments.backends, arguments.cases)


@contextmanager
def made(record: Path | None, size: year.Size) -> Iterator[tuple[str, Path]]:
    """URL and file of a record of that size; one that is there already is taken as it is."""
    with tempfile.TemporaryDirectory(prefix="memtrend-bench-") as folder:
        path = (record or Path(folder) / "record.db").resolve()
        if not path.exists():
            part = path.with_suffix(".part")
            part.unlink(missing_ok=True)
            _make(f"sqlite:///{part}", size)
            part.rename(path)
        yield f"sqlite:///{path}", path


@contextmanager
def _postgres(size: year.Size) -> Iterator[tuple[str, Path | None]]:
    from tests.postgres import server  # which installs one

    with server() as running:
        _make(running.url, size)
        yield running.url, None


def _make(url: str, size: year.Size) -> None:
    db = open_database(url)
    year.make(db, size)
    db.close()


def _measured(url: str, path: Path | None, times: int) -> tuple[list[str], list[Bar]]:
    before = load()
    db = open_database(url)
    try:
        facts = _facts(db)
        asked = [*_figures(db, path, times)]
    finally:
        db.close()
    from benchmarks.figures import looks  # not before: it loads the dashboard, which no question has to bear

    seen = [looks.look(page, url, path, **_parameters(url, page)) for page in looks.PAGES]
    bars = [Bar(f"{one.name}_ms", round(one.times.median, 2), MAX_MS[one.name]) for one in asked]
    bars += [Bar(f"{one.page}_page_s", round(one.waited, 3), MAX_PAGE_S) for one in seen]
    lines = [facts, *(one.told for one in asked), *(f"{one.page} page: {one.told}" for one in seen)]
    return [*lines, f"before: {before}; after: {load()}"], bars


def _facts(db: Database) -> str:
    with db.read() as connection:
        results, runs, rolled = (
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (m.case_result, m.run, m.rollup)
        )
    kept = queries.record_facts(db)
    return (
        f"{results:,} case results of {runs:,} runs, {rolled:,} rows of rollups, "
        f"{kept.size / 1e9:.2f} GB in {kept.server}"
    )


def _figures(db: Database, path: Path | None, times: int) -> Iterator[Figure]:
    names = [backend.name for backend in queries.backends(db)]
    newest = queries.runs(db, suites=[SUITE], statuses=["whole"], limit=1)[0]
    since = newest.started_at - timedelta(days=365)

    def figure(name: str, call: Callable[[], Any], what: str, instead: Callable[[], Any]) -> Figure:
        return Figure(name, timed(call, times, path), (what, seconds(instead)))

    yield figure(
        "trends", lambda: queries.trends(db, SUITE, SIX, backends=names, since=since),
        "GROUP BY over the scores", lambda: _grouped(db),
    )  # fmt: skip
    yield figure(
        "run_cases", lambda: queries.run_cases(db, newest.id),
        "objects, and the scores of each", lambda: _objects(db, newest.id),
    )  # fmt: skip
    yield figure(
        "case_history", lambda: queries.case_history(db, SUITE, CASE),
        "all its results, without an index of a case", lambda: _scanned(db),
    )  # fmt: skip
    url = db.dialect.url.render_as_string(hide_password=False)
    yield figure("open", lambda: open_database(url).close(), "alembic upgrade head", lambda: _upgraded(db))
    yield Figure("close_run", *closing.measured(db, SUITE, times))


# What one would have written instead ----------------------------------------------------------------------


def _grouped(db: Database) -> Sequence[Any]:
    """The means of the metrics that are scores: five of the six."""
    result, score, run = m.case_result.c, m.score.c, m.run.c
    query = (
        sa.select(run.backend_id, run.id, score.metric_id, sa.func.count(), sa.func.avg(score.value))
        .join(m.case_result, result.run_id == run.id)
        .join(m.score, score.case_result_id == result.id)
        .join(m.suite, m.suite.c.id == run.suite_id)
        .where(m.suite.c.name == SUITE, run.status == "whole")
        .where(score.metric_id.in_([METRICS[name].id for name in SIX]))
        .group_by(run.backend_id, run.id, score.metric_id)
    )
    with db.read() as connection:
        return connection.execute(query).all()


def _objects(db: Database, run_id: int) -> list[Any]:
    with db.read() as connection, Session(connection) as session:
        results = session.exec(select(CaseResult).where(CaseResult.run_id == run_id)).all()
        return [
            (
                session.get(Case, one.case_id),
                session.get(Detail, one.id),
                session.exec(select(Score).where(Score.case_result_id == one.id)).all(),
            )
            for one in results
        ]


def _scanned(db: Database) -> Sequence[Any]:
    result, case = m.case_result.c, m.case.c
    query = (
        sa.select(result.run_id, result.status, m.score.c.value)
        .join(m.case, case.id == result.case_id + 0)
        .join(m.suite, m.suite.c.id == case.suite_id)
        .outerjoin(m.score, sa.and_(m.score.c.case_result_id == result.id, m.score.c.metric_id == 1))
        .where(m.suite.c.name == SUITE, case.name == CASE)
    )
    with db.read() as connection:
        return connection.execute(query).all()


def _upgraded(db: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with db.write() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _parameters(url: str, page: str) -> dict[str, str]:
    """What the address of a page names: the newest run of the largest suite, or one of its cases."""
    if page not in ("run", "case", "trends", "suites"):
        return {}
    db = open_database(url)
    newest = queries.runs(db, suites=[LARGEST], statuses=["whole"], limit=1)[0]
    db.close()
    run = {"run": str(newest.id)}
    return {
        "run": run,
        "case": {"suite": LARGEST, "case": CASE, **run},
        "trends": {"suite": LARGEST, "range": "365 d"},
        "suites": {"suite": LARGEST},
    }[page]


if __name__ == "__main__":
    sys.exit(main())
