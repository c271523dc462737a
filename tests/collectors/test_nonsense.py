"""A configuration that is edited to nonsense under a real collector."""

import shutil
from datetime import UTC, datetime

import pytest

from store import health_words, queries
from tests.collectors.collecting import Process, ended, expect, until

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("patience")]

FLOOR = "[backends.floor]\ntype = 'everything'\n"
BROKEN = {
    "not TOML": ('[limits\ntimeout = "soon"\n', ["memtrend.toml: not TOML", "at line 1"]),
    "cut off": ("[backends.floor]\ntype = 'every", ["not TOML", "at end of document"]),
    "not text": (b"\xff\xfe\x00", ["not UTF-8 text"]),
    "unknown key": ("[limits]\nspeed = 3\n", ["limits.speed", "unknown key"]),
    "wrong type": ("[limits]\ntimeout = 'soon'\n", ["limits.timeout"]),
    "unknown suite": (
        f"{FLOOR}[schedules.nightly]\ncron = '0 3 * * *'\nsuites = ['yours']\n",
        ["schedules.nightly.suites", "unknown name"],
    ),
    "bad cron": (
        f"{FLOOR}[schedules.nightly]\ncron = '0 3 * * 7'\nsuites = ['golden']\n",
        ["schedules.nightly.cron", "weekdays by name"],
    ),
    "a suite that is no file": (
        f"{FLOOR}[suites.mine]\npath = 'nowhere.jsonl'\n",
        ["nowhere.jsonl"],
    ),
}


def refused(db):
    """What Health says of the configuration, "" while all is well."""
    (beat,) = queries.heartbeats(db)
    told = [(event.at, event.message) for event in queries.events(db, 500, levels=["info", "error"])]
    return health_words.refused_configuration(told, beat.started_at)


def says(db, *parts):
    until(lambda: all(part in refused(db) for part in parts), f"Health says {parts}")


@pytest.fixture
def home(home, linted_record):
    shutil.copy(linted_record, home / "record.db")
    return home


def test_nonsense_changes_nothing(home, db):
    """Whatever is written into the file, or put in its place, Health says what is wrong with it, by key or
    line, and what was in force runs on. A file that is mended comes into force."""
    file = home / "memtrend.toml"
    fine = file.read_text()
    with Process(home, "collect") as process:
        until(lambda: queries.heartbeats(db) and queries.schedules(db), "the collector beats")
        for content, parts in BROKEN.values():
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            says(db, *parts)
        file.unlink()
        says(db, "memtrend.toml is gone")
        file.mkdir()
        expect(db, "nightly", datetime.now(UTC))
        until(lambda: ended(db, "nightly"), "the former schedule fires")
        assert [fire.state for fire in ended(db, "nightly")] == ["done"]
        assert "memtrend.toml is gone" in refused(db)
        file.rmdir()
        file.write_text(fine + "[schedules.weekly]\ncron = '0 4 * * sun'\nsuites = ['mine']\n")
        until(lambda: not refused(db), "Health has nothing to say any more")
        until(lambda: {row.name for row in queries.schedules(db)} == {"nightly", "weekly"}, "a new schedule")
        assert process.poll() is None
