"""Every page over a record on a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from store import writes
from store.database import open_database
from tests.dashboard.conftest import Open
from tests.dashboard.test_pages import PAGES, text, title
from tests.dashboard.watched import count_index
from tests.databases import Databases
from tests.store import first_release

NOW = datetime.now(UTC).replace(microsecond=0)
TELLS_OF_AGES = ("overview", "runs", "health", "settings")


def _fill(url: str) -> str:
    """Runs that the first release made, and something for each part of Health."""
    first_release.make(url)
    missed = NOW - timedelta(hours=2)
    with closing(open_database(url)) as db:
        count_index(db, NOW - timedelta(days=1), 100, 90)
        with time_machine.travel(missed - timedelta(hours=1), tick=False):
            writes.write_expected(db, "nightly", [missed], missed)
        writes.record_schedule(db, "nightly", NOW + timedelta(hours=1), True)
        writes.beat(db, "collector", 4711, "here")
        writes.add_request(db, "run", {"suite": "golden", "backend": "mem0"})
        writes.add_event(db, "error", "collector", "a provider did not answer")
        writes.add_mark(db, "agent 4.12")
    return url


@pytest.fixture(scope="module")
def on_a_server(databases: Databases) -> Iterator[str]:
    with databases.fresh("template1") as url:
        yield _fill(url)


@pytest.fixture(scope="module")
def in_a_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _fill(f"sqlite:///{tmp_path_factory.mktemp('pages')}/record.db")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_the_same_from_a_server(
    page: str, open_page: Open, on_a_server: str, in_a_file: str
) -> None:
    """A page draws from PostgreSQL what it draws from a file: as many tables, and the same words and cells
    where these do not tell of ages."""
    asked = {"run": "3", "case": "keys"} if page in ("run", "case") else {}
    ours = open_page(page, in_a_file, **asked)
    said, cells = (title(ours), text(ours)), [table.value.to_csv() for table in ours.dataframe]
    theirs = open_page(page, on_a_server, **asked)
    assert title(theirs)
    assert len(theirs.dataframe) == len(cells)
    if page not in TELLS_OF_AGES:
        assert (title(theirs), text(theirs)) == said
        assert [table.value.to_csv() for table in theirs.dataframe] == cells
