"""Pages and /healthz over a record whose file goes away, is another one, or cannot be written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import machines
from store import writes
from store.database import open_database
from store.dialects.place import Place
from tests.dashboard import calls
from tests.dashboard.conftest import Open

GONE = "record.db is gone: it was removed or moved while it was in use"


@pytest.fixture
def file(small_record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A record that nobody else has open, so that nothing lies beside it."""
    path = Path(shutil.copy(small_record, tmp_path))
    monkeypatch.setenv("MEMTREND_DATABASE__URL", f"sqlite:///{path}")
    machines.forget()
    yield path
    machines.forget()


def health() -> tuple[int, str]:
    answer = calls.call("GET", "/healthz")
    return answer.status_code, answer.json().get("error", "")


def page(at: AppTest) -> str:
    told = " ".join(str(part.value) for part in (*at.markdown, *at.text, *at.title, *at.header))
    return told.replace("\\", "").replace("\u2060", "")


def replace(file: Path) -> None:
    with closing(open_database(f"sqlite:///{file.with_name('other.db')}")) as other:
        writes.beat(other, "collector", 1, "there")
        writes.add_event(other, "error", "collector", "of the other record")
    for part in file.parent.glob("record.db*"):
        part.unlink()
    file.with_name("other.db").rename(file)


def test_a_record_that_is_gone_is_503_until_it_is_back(file: Path) -> None:
    """/healthz says what happened and what to do, /metrics and the API as well; no empty record is made in
    its place, and nothing needs to be restarted once it is back."""
    assert health() == (200, "")
    file.rename(file.with_name("away.db"))
    for _ in range(2):
        status, error = health()
        assert (status, GONE in error, "memtrend restore" in error) == (503, True, True)
        for path in ("/metrics", "/api/runs"):
            answer = calls.call("GET", path)
            assert (answer.status_code, GONE in answer.json()["error"]) == (503, True)
    assert not file.exists()
    file.with_name("away.db").rename(file)
    assert health() == (200, "")


def test_a_record_that_was_replaced_is_503_once(file: Path) -> None:
    """/healthz says that there is another one, and then reads that."""
    assert health() == (200, "")
    replace(file)
    status, error = health()
    assert (status, "was replaced by another file" in error) == (503, True)
    assert health() == (200, "")


def test_a_record_that_cannot_be_written_is_503(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor hears of a record that takes nothing more, read-only or on a full disk, before a night is
    lost."""
    assert health() == (200, "")
    monkeypatch.setattr(Place, "free", lambda place: 1_000_000)
    assert health() == (503, f"{file}: no more than 1 MB are free on its disk; make room there")
    monkeypatch.setattr(Place, "is_writable", lambda place: False)
    status, error = health()
    assert (status, "it is read-only; make the file" in error) == (503, True)


def test_a_page_says_that_the_record_is_gone(open_page: Open, file: Path) -> None:
    """Every page says it in words, also one that was open, makes nothing in its place, and shows the record
    again once it is back."""
    at = open_page("health", f"sqlite:///{file}")
    assert "cannot read" not in page(at)
    file.rename(file.with_name("away.db"))
    for _ in range(2):
        at.run()
        assert GONE in page(at)
        assert not at.exception
    assert not file.exists()
    file.with_name("away.db").rename(file)
    assert GONE not in page(at.run())


def test_a_page_shows_the_record_that_was_put_in_place(open_page: Open, file: Path) -> None:
    """After a replacement a page says so once, and then has nothing left of the former record."""
    at = open_page("health", f"sqlite:///{file}")
    replace(file)
    assert "was replaced by another file" in page(at.run())
    at.run()
    assert "replaced" not in page(at)
    assert any("of the other record" in table.value.to_csv() for table in at.dataframe)


def test_health_says_that_nothing_can_be_written(
    open_page: Open, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that takes nothing more is the first thing that Health says, with the reason."""
    monkeypatch.setattr(Place, "free", lambda place: 1_000_000)
    with closing(open_database(f"sqlite:///{file}")) as db:
        writes.beat(db, "collector", 1, "here")
    at = open_page("health", f"sqlite:///{file}")
    assert "The record cannot be written: nothing is kept" in page(at)
    assert "no more than 1 MB are free on its disk" in page(at)
