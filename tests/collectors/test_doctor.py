"""The doctor says what is in order and what is not, and for what is not, what to do."""

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from collectors import doctor
from collectors.configured import configured
from collectors.contract import ADAPTER_CHECKS, CONTRACT
from store import queries, writes
from store.database import open_database
from store.dialects import place
from tests.collectors.playground import cases, write_suite

CONFIG = """
[database]
url = "sqlite:///record.db"
[suites.small]
path = "small.jsonl"
[limits]
timeout = 0.5
[backends.words]
type = "keyword"
"""


def odd(name, type, **options):
    lines = [f"[backends.{name}]", f'type = "tests.collectors.odd_backends:{type}"']
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in options.items())]) + "\n"


@pytest.fixture
def folder(tmp_path, empty_record, monkeypatch):
    """A folder in which everything is in order."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "record.db").write_bytes(empty_record.read_bytes())
    write_suite(tmp_path / "small.jsonl", cases(3))
    (tmp_path / "memtrend.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def record(folder):
    database = open_database(f"sqlite:///{folder / 'record.db'}")
    yield database
    database.close()


def examined():
    return {check.name: check for check in doctor.check_all()}


def bad():
    return [check for check in doctor.check_all() if not check.ok]


def test_healthy(folder):
    """In a healthy folder every check is fine, each by name, and says what it saw."""
    found = examined()
    assert all(check.ok for check in found.values()), found
    names = ["configuration", "disk", "suite small", "database", "clock", "collector", "backend words"]
    assert [name for name in found if name in names] == names
    assert found["configuration"].detail == str(folder / "memtrend.toml")
    assert found["suite small"].detail.startswith("3 cases, 6 plants, version ")
    assert re.search(r"record\.db, SQLite [\d.]+, 0 runs$", found["database"].detail)
    assert found["backend words"].detail.endswith("; memtrend doctor words checks what it ought to do")


def test_configuration(folder):
    """A broken configuration is all that can be told, by file and key."""
    (folder / "memtrend.toml").write_text("[limits]\nspeed = 3\n")
    (check,) = doctor.check_all()
    assert (check.name, check.ok) == ("configuration", False)
    assert "limits.speed" in check.detail
    assert check.advice == "mend the keys named above"


def test_missing_suite(folder):
    """A suite whose file is missing is named."""
    (folder / "small.jsonl").unlink()
    (check,) = bad()
    assert check.name == "suites"
    assert "small.jsonl" in check.detail


def test_database(folder):
    """A database that cannot be opened is told with the way out."""
    (folder / "record.db").write_text("something else entirely, and long enough to be looked at " * 20)
    (check,) = bad()
    assert check.name == "database"
    assert "not an SQLite database" in check.detail
    assert check.advice


def test_disk(folder, monkeypatch):
    """Little room beside the database is told before it is none."""
    monkeypatch.setattr(doctor, "LOW_DISK_GB", 1e9)
    (check,) = bad()
    assert (check.name, check.advice) == ("disk", "make room, or move database.url")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_a_record_on_a_network_is_refused(folder, monkeypatch, kind, tmp_path):
    """A record on a network file system is refused, with the reason and where it may lie."""
    mounts = f"22 1 254:0 / / rw - ext4 x rw\n30 22 0:5 / {folder.resolve()} rw - {kind} server:/x rw\n"
    (tmp_path / "mounts").write_text(mounts)
    monkeypatch.setattr(place, "MOUNTS", tmp_path / "mounts")
    (check,) = bad()
    assert check.name == "file system"
    assert f"network file system ({kind}), where SQLite's log (WAL) does not work" in check.detail
    assert "a disk of this machine" in check.advice
    assert "PostgreSQL" in check.advice


def test_clock(folder):
    """A clock that is not the database's would let leases lapse, and is told."""
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=5)):
        (check,) = bad()
    assert check.name == "clock"
    assert re.match(r"(29\d|30\d)\.\d s from the database's", check.detail)


@pytest.mark.parametrize(("ago", "fine"), [(50, True), (61, False)])
def test_collector(folder, record, ago, fine):
    """A collector that has not been heard of for a minute is told, with its process: the limit is that of
    Health and /healthz."""
    with time_machine.travel(datetime.now(UTC) - timedelta(seconds=ago), tick=False):
        writes.beat(record, "collector", 4711, "attic")
    check = examined()["collector"]
    assert check.ok is fine
    assert "pid 4711 on attic" in check.detail
    assert "memtrend collect" in check.advice


def test_missed_schedules(folder, record):
    """What should have run and did not is told by schedule and time, although no collector lives."""
    now = datetime.now(UTC)
    nights = [now - timedelta(days=days) for days in (2, 1)]
    with time_machine.travel(now - timedelta(days=3), tick=False):
        writes.write_expected(record, "nightly", nights, now)
        writes.record_schedule(record, "nightly", nights[0], enabled=True)
    (check,) = bad()
    assert check.name == "schedule nightly"
    assert check.detail == f"missed 2 fires, the last of {nights[1]:%Y-%m-%d %H:%M} UTC: no collector ran"
    assert "memtrend collect" in check.advice


def test_a_missed_schedule_beside_a_collector(folder, record):
    """While a collector lives, nobody is told to start one over what was missed before."""
    now = datetime.now(UTC)
    with time_machine.travel(now - timedelta(days=2), tick=False):
        writes.write_expected(record, "nightly", [now - timedelta(days=1)], now)
        writes.record_schedule(record, "nightly", now - timedelta(days=1), enabled=True)
    writes.beat(record, "collector", 4711, "attic")
    (check,) = bad()
    assert check.detail.startswith("missed the fire of")
    assert check.advice.startswith("this is told until the schedule has run again")
    assert "start memtrend" not in check.advice


def test_schedules_that_ran(folder, record):
    """Schedules of which nothing was missed are told to be in order."""
    writes.record_schedule(record, "nightly", datetime.now(UTC), enabled=True)
    assert examined()["schedules"].ok


@pytest.mark.parametrize("name", ["store", "collectors", "dashboard"])
def test_shadowed(folder, name):
    """A folder of the name of one of our packages is noticed before it takes its place."""
    (folder / name).mkdir()
    (check,) = bad()
    assert (check.name, check.detail) == ("shadowed names", f"./{name} has the name of a package of memtrend")
    assert check.advice == "rename the folder, or start memtrend from another one"


@pytest.mark.parametrize(
    ("type", "options", "detail", "advice"),
    [
        ("Broken", {}, "the server says: unknown key", "mend [backends.ours] in memtrend.toml"),
        ("Missing", {}, "has no 'Missing'", "mend [backends.ours] in memtrend.toml"),
        ("Shelf", {"speed": 3}, "cannot be made with options speed", "mend [backends.ours]"),
        ("Garbage", {"word": '""'}, "recall: ", "each a Hit with id and text"),
        ("Hanging", {"word": '""'}, "recall: no answer within 0.5 s", "each a Hit with id and text"),
        ("Hanging", {"word": '""', "verb": '"remember"'}, "remember: no answer", "must store them"),
        ("Unclosable", {}, "close: OSError: the socket is gone", "close() must give back"),
    ],
)
def test_broken_backend(folder, type, options, detail, advice):
    """A broken backend is told by name with what it did and what to do, and the others stay fine."""
    (folder / "memtrend.toml").write_text(CONFIG + odd("ours", type, **options))
    (check,) = bad()
    assert check.name == "backend ours"
    assert detail in check.detail
    assert advice in check.advice


@pytest.mark.parametrize(
    ("section", "detail", "advice"),
    [
        ('type = "mem1"', "x.type: unknown name; known: chroma, ", "mend the keys named above"),
        ('type = "chroma"', 'package = "chromadb', ""),
        ('type = "mem0"\npackage = "six==1.17.0"\npython = "/no/such/python"', "cannot make an environment",
         "mend package, with or python of the release in [backends.x]"),
        ('type = "not_there:Memory"', "not_there", "mend [backends.x] in memtrend.toml, or what it names"),
    ],
)  # fmt: skip
def test_advice_fits_the_error(folder, section, detail, advice):
    """The types are listed for one that is not known; what says itself what to do gets no other advice."""
    config = CONFIG.replace("timeout = 0.5", "timeout = 60")
    (folder / "memtrend.toml").write_text(f"{config}\n[backends.x]\n{section}\n")
    (check,) = bad()
    assert detail in check.detail
    assert check.advice == advice


def test_slow_backend(folder):
    """A backend is not broken because all of its calls together take longer than one may."""
    (folder / "memtrend.toml").write_text(CONFIG + odd("ours", "Slow", seconds=0.06))
    assert bad() == []


@pytest.mark.parametrize(
    "examine", [lambda: examined().values(), lambda: doctor.check_backend(configured(), "ours")]
)
def test_backend_in_use(folder, record, examine):
    """A backend that a run uses is left alone: nothing is planted or deleted in it meanwhile."""
    (folder / "memtrend.toml").write_text(CONFIG + odd("ours", "Shelf", journal='"journal"'))
    token = writes.acquire_lease(record, writes.backend_lease("ours"), "elsewhere:1", 60)
    found = {check.name: (check.ok, check.detail) for check in examine()}
    assert found["backend ours"] == (True, "in use by a run: not checked")
    assert not (folder / "journal").exists()
    writes.release_lease(record, writes.backend_lease("ours"), token)
    examine()
    assert (folder / "journal").exists()
    assert not any(lease.held for lease in queries.leases(record))


# One backend


def test_contract(folder):
    """Asked about one backend, the doctor explains the contract check by check."""
    found = {check.name: check for check in doctor.check_backend(configured(), "words")}
    assert found.keys() == {check.name for check in (*ADAPTER_CHECKS, *CONTRACT)} | {"close"}
    assert all(check.ok for check in found.values()), found


def test_contract_broken(folder):
    """What a backend ought to do and does not is told, with what would mend it."""
    (folder / "memtrend.toml").write_text('[backends.all]\ntype = "everything"\n')
    found = {check.name: check for check in doctor.check_backend(configured(), "all")}
    assert not found["k"].ok
    assert found["k"].advice == "Pass k on to the search, or cut what comes back."
    assert found["users"].ok


def test_contract_of_a_broken_adapter(folder):
    """Of an adapter that is broken no contract is asked."""
    (folder / "memtrend.toml").write_text(odd("ours", "Garbage", word='""'))
    found = [check.name for check in doctor.check_backend(configured(), "ours")]
    assert "recall" in found
    assert not set(found) & {check.name for check in CONTRACT}


def test_leaves_nothing(folder, record):
    """A doctor's visit leaves no run behind, and no memory in a store on disk."""
    stored = CONFIG + '[backends.kept]\ntype = "keyword"\ndirectory = "kept"\n'
    (folder / "memtrend.toml").write_text(stored)
    assert bad() == []
    doctor.check_backend(configured(), "kept")
    with closing(sqlite3.connect(folder / "kept" / "keyword.sqlite")) as stored:
        assert stored.execute("SELECT count(*) FROM memory").fetchone() == (0,)
    with record.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM run").scalar() == 0
