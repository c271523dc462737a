"""The file of an embedded store: whose it is, and what is said when it cannot be used."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from collectors.backend import Backend, BackendConfig, BackendError, open_backend
from collectors.suite import Memory, Scope

BOX = Scope("memtrend-test-1")


def opened(directory: Path | None, type: str = "keyword", **options: object) -> Backend:
    return open_backend(BackendConfig(type, type, options, directory=directory))


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    """A file that memtrend did not make is refused, and not a byte of it changes."""
    path = tmp_path / "keyword.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE customers (name TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(BackendError, match="was not made by memtrend: give another directory") as raised:
        opened(tmp_path)
    assert raised.value.permanent
    assert path.read_bytes() == before


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    """Garbage in the place of the file is a permanent error that names it."""
    (tmp_path / "keyword.sqlite").write_bytes(b"not a database, but long enough to be taken for one" * 50)
    with pytest.raises(BackendError, match=r"keyword\.sqlite: file is not a database") as raised:
        opened(tmp_path)
    assert raised.value.permanent


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A file where the directory should be is a permanent error that names it."""
    (tmp_path / "store").write_text("a file")
    with pytest.raises(BackendError, match="store") as raised:
        opened(tmp_path / "store")
    assert raised.value.permanent


def test_a_locked_file_may_be_tried_again(tmp_path: Path) -> None:
    """While another process writes, the error is a passing one."""
    backend = opened(tmp_path)
    backend._database.execute("PRAGMA busy_timeout = 10")  # type: ignore[attr-defined]
    other = sqlite3.connect(tmp_path / "keyword.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendError, match="database is locked") as raised:
        backend.reset(BOX)
    assert not raised.value.permanent
    other.close()
    backend.reset(BOX)
    backend.close()


def test_a_plant_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When indexing fails nothing of the batch is stored, in either place."""
    backend = opened(tmp_path)
    backend.reset(BOX)

    def fails(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(backend, "_index", fails)
        with pytest.raises(BackendError, match="disk full"):
            backend.remember(BOX, [Memory("m-1", "The gate is open.")])
    assert backend.count(BOX) == {"keyword": 0}
    backend.remember(BOX, [Memory("m-1", "The gate is open.")])
    assert [hit.id for hit in backend.recall(BOX, "gate", 5).hits] == ["m-1"]
    backend.close()


def test_what_was_planted_survives_a_kill(tmp_path: Path) -> None:
    """A process that dies right after planting has planted."""
    code = (
        "import os, sys; from pathlib import Path; from collectors.suite import Memory, Scope;"
        "from collectors.backend import BackendConfig, open_backend;"
        "b = open_backend(BackendConfig('k', 'keyword', directory=Path(sys.argv[1])));"
        "b.reset(Scope('memtrend-test-1'));"
        "b.remember(Scope('memtrend-test-1'), [Memory('m-1', 'The gate is open.')]); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    backend = opened(tmp_path)
    assert [hit.id for hit in backend.recall(BOX, "gate", 5).hits] == ["m-1"]
    backend.close()


def test_a_name_with_a_lone_surrogate_is_refused() -> None:
    """A user whose name no file can hold is an error that shows it, and not another user."""
    backend = opened(None)
    backend.reset(BOX)
    with pytest.raises(BackendError, match="lone surrogate") as raised:
        backend.remember(Scope(BOX.namespace, "anna\ud800"), [Memory("m-1", "text")])
    assert raised.value.permanent
    backend.close()


@pytest.mark.parametrize("type", ["keyword", "dense", "hybrid", "everything", "nothing"])
def test_options_without_effect_are_refused(type: str) -> None:
    """A setting that the store does not know is told by name; empty ones are no settings."""
    with pytest.raises(BackendError, match=f"{type} takes no threshold") as raised:
        opened(None, type, threshold=0.5)
    assert raised.value.permanent
    opened(None, type, config={}).close()
