"""A record of its own for each test, in a real file, and retries without their pauses."""

import shutil
import subprocess
import sys
from contextlib import closing

import pytest
import stamina

from collectors import cli
from collectors.configured import load_suite, suite_names
from collectors.lint.rules import RULES_VERSION
from collectors.record import suite_record
from store import writes
from store.database import open_database
from store.records import LintRecord
from store.settings import CONFIG_VARIABLE, Settings
from tests.collectors import collecting
from tests.collectors.playground import CONFIG, LINES, good_nights, project


@pytest.fixture(scope="session")
def empty_record(tmp_path_factory):
    """Made once, since the first migration takes its time."""
    path = tmp_path_factory.mktemp("empty") / "record.db"
    open_database(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def linted_record(empty_record):
    """The same after a look at the shipped suites, which keeps a new collector from its first run for a
    while."""
    path = empty_record.with_name("linted.db")
    with closing(open_database(f"sqlite:///{shutil.copy(empty_record, path)}")) as db:
        for name in suite_names(settings := Settings()):
            version = writes.register_suite(db, suite_record(load_suite(settings, name)))
            writes.record_lint(db, version, LintRecord(RULES_VERSION, (), 0, 0))
    return path


@pytest.fixture(scope="session")
def good(tmp_path_factory, empty_record):
    """A record with six good nights, which nobody is told of, and their plan. Tests copy it."""
    folder = tmp_path_factory.mktemp("good")
    path = shutil.copy(empty_record, folder / "record.db")
    with pytest.MonkeyPatch.context() as patch, closing(open_database(f"sqlite:///{path}")) as db:
        patch.chdir(folder)  # the revision of the repository that tests run in is none of theirs
        return path, good_nights(folder, db)


@pytest.fixture
def good_record(tmp_path, good):
    """A copy of its own for each test, in a folder that may be a project's."""
    database = open_database(f"sqlite:///{shutil.copy(good[0], tmp_path / 'record.db')}")
    yield database
    database.close()


@pytest.fixture
def db(tmp_path, empty_record):
    path = shutil.copy(empty_record, tmp_path / "record.db")
    database = open_database(f"sqlite:///{path}")
    yield database
    database.close()


@pytest.fixture
def no_pauses():
    stamina.set_testing(True, attempts=10, cap=True)
    yield
    stamina.set_testing(False)


# The command line, in a folder of its own


@pytest.fixture
def folder(tmp_path):
    return project(tmp_path, CONFIG, LINES)


@pytest.fixture
def ask(monkeypatch, capsys):
    """Call memtrend in a folder as `memtrend` does, but in this process, which is quicker."""

    def call(folder, *arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setenv(CONFIG_VARIABLE, "")  # which --config sets
        monkeypatch.setattr(sys, "argv", ["memtrend", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return call


# A collector, in a folder of its own


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with a configuration: suite `mine` of three cases, backend `floor`, the schedule `nightly`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memtrend.toml").write_text(collecting.CONFIG.format(backend="floor", type="everything"))
    collecting.write_suite(tmp_path, 3)
    return tmp_path


@pytest.fixture
def slow_home(home):
    """The same over a backend that takes its time for each of 40 cases."""
    (home / "memtrend.toml").write_text(collecting.CONFIG.format(backend="slow", type="sluggish:Slow"))
    (home / "sluggish.py").write_text(collecting.SLOW)
    collecting.write_suite(home, 40)
    return home


@pytest.fixture
def patience(monkeypatch):
    """A busy machine takes its time to start two collectors."""
    monkeypatch.setattr(collecting, "WAIT_S", 200.0)
