"""Records to look at, and a browser to look with."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
import streamlit as st
from streamlit import config
from streamlit.testing.v1 import AppTest

import dashboard
from dashboard import api, configuration, machines
from dashboard.limiter import RateLimit
from store.database import open_database
from tests.dashboard import calls
from tests.dashboard.alarmed import Alarmed, alarm
from tests.dashboard.seed import World, seed
from tests.dashboard.watched import watch
from tests.store.seeding import Seed

APP = Path(dashboard.__file__).parent / "app.py"

Open = Callable[..., AppTest]


class Seeded:
    """A record file with what it was made of."""

    def __init__(self, path: Path, world: World) -> None:
        self.path, self.world = path, world

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test begins as a dashboard does: with no configuration that was in force before."""
    monkeypatch.setattr(configuration, "_in_force", configuration._InForce())


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    """Some five weeks of runs and one that is going on. Tests only read it, and the last one proves that."""
    path = tmp_path_factory.mktemp("seeded") / "memtrend.db"
    database = open_database(f"sqlite:///{path}")
    world = seed(database, nights=36, cases=26, running=True)
    database.close()
    before = told(path)
    yield Seeded(path, world)
    assert told(path) == before, "a test wrote into the record that all share"


def told(path: Path) -> str:
    """A digest of every row."""
    with closing(sqlite3.connect(path)) as connection:
        return sha256("\n".join(connection.iterdump()).encode()).hexdigest()


@pytest.fixture(scope="session")
def watched_record(seeded: Seeded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The seeded record, and all that Health tells of. Tests only read it."""
    path = tmp_path_factory.mktemp("watched") / "memtrend.db"
    shutil.copy(seeded.path, path)
    database = open_database(f"sqlite:///{path}")
    watch(database, seeded.world.nights)
    database.close()
    return path


@pytest.fixture(scope="session")
def alarmed(seeded: Seeded, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Alarmed]:
    """The seeded record with alerts of every state, and which is which. Tests copy it before they write."""
    path = tmp_path_factory.mktemp("alarmed") / "memtrend.db"
    shutil.copy(seeded.path, path)
    with closing(open_database(f"sqlite:///{path}")) as database:
        return path, alarm(database, seeded.world)


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Draws a page over a record, as AppTest sees it: `open_page("runs", url, suite="golden")`."""
    config.get_config_options(force_reparse=True)
    config.set_option("client.showErrorDetails", "full")  # else a failing page says nothing here
    config.set_option("server.address", "127.0.0.1")

    def open_(page: str, url: str, **parameters: str) -> AppTest:
        monkeypatch.setenv("MEMTREND_DATABASE__URL", url)
        at = AppTest.from_file(str(APP), default_timeout=30)
        for name, value in parameters.items():
            at.query_params[name] = value
        at.run()
        return at if page == "overview" else at.switch_page(f"views/{page}.py").run()

    _forget()
    yield open_
    _forget()


def _forget() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()


# For machines --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def small_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One suite and two backends, as a collector writes them when it starts."""
    path = tmp_path_factory.mktemp("template") / "record.db"
    with closing(open_database(f"sqlite:///{path}")) as db:
        seed = Seed(db)
        seed.suite()
        for name in ("keyword", "mem0"):
            seed.backend(name)
    return path


@pytest.fixture
def record(small_record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seed]:
    """A copy to write to; and a token."""
    url = f"sqlite:///{shutil.copy(small_record, tmp_path)}"
    monkeypatch.setenv("MEMTREND_DATABASE__URL", url)
    monkeypatch.setenv("MEMTREND_API__TOKEN", calls.TOKEN)
    with closing(open_database(url)) as db:
        yield Seed(db)


@pytest.fixture
def call(record: Seed, monkeypatch: pytest.MonkeyPatch) -> Iterator[calls.Call]:
    """Asks the app over `record`, at a moment at which nobody has called yet."""
    monkeypatch.setattr(api, "LIMIT", RateLimit(clock=lambda: 0.0))

    machines.forget()
    yield calls.call
    machines.forget()
