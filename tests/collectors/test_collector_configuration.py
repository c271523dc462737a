"""A configuration that changes under a collector: a good one is followed, a broken one changes nothing."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from collectors.collector import collect
from collectors.pulse import NAME
from collectors.reload import SettingsFile
from store import queries
from store.errors import StoreError
from store.settings import SettingsError
from tests.collectors.collecting import Running, answered, ask, told, until, write_suite


def test_suites_are_looked_at_when_they_come_into_force(home, db):
    """What lint finds is in the record soon after the start, and anew after a suite has changed."""

    def wrong():
        return [row.case for row in queries.findings(db, "mine") if row.rule == "missing-source"]

    with Running(db):
        until(lambda: wrong() == ["door-0", "door-1", "door-2"], "the suite is looked at")
        write_suite(home, 4)
        edited = (home / "memtrend.toml").read_text() + "\n"
        (home / "memtrend.toml").write_text(edited)
        until(lambda: len(wrong()) == 4, "the changed suite is looked at")


def test_a_broken_edit_keeps_the_former_configuration(home, db):
    """An edit that breaks the file is told without its values and changes nothing; mended, it is followed."""
    file = home / "memtrend.toml"
    good = file.read_text()
    with Running(db):
        file.write_text(good.replace('cron = "0 3 * * *"', 'cron = "0 3 * * 1"'))
        event = told(db, "the former stays in force", NAME)
        assert [state.name for state in queries.schedules(db)] == ["nightly"]
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"
        file.write_text(
            good.replace("schedules.nightly", "schedules.weekly").replace("0 3 * * *", "0 3 * * mon")
        )
        told(db, "the changed configuration is in force", NAME)
        states = {state.name: (state.next_fire, state.enabled) for state in queries.schedules(db)}
    assert event.level == "error"
    assert "schedules.nightly" in event.message
    assert states["nightly"] == (None, False)
    assert states["weekly"][0].weekday() == 0
    now = datetime.now(UTC)
    expected = queries.schedule_calendar(db, now, now + timedelta(days=99))
    assert {row.schedule for row in expected} == {"weekly"}


def test_a_broken_suite_keeps_the_former_configuration(home, db):
    """An edit that names a suite whose file is not there changes nothing either."""
    file = home / "memtrend.toml"
    with Running(db):
        file.write_text(file.read_text() + '[suites.other]\npath = "missing.jsonl"\n')
        told(db, "missing.jsonl", NAME)
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"


def test_a_removed_file_keeps_the_former_configuration(home, db):
    """A file that vanishes does not bring the defaults into force behind the user's back."""
    with Running(db):
        (home / "memtrend.toml").unlink()
        told(db, "is gone", NAME)
        assert answered(db, ask(db, suite="mine", backend="floor")).state == "done"


def test_a_change_that_the_record_refused_is_followed_later(home, db, monkeypatch, caplog):
    """A full disk or a locked file at the moment of a change ends nothing, and the change is kept."""
    failures = [StoreError("no space left on its disk")]

    def register(db, settings):
        if failures:
            raise failures.pop()

    with Running(db):
        monkeypatch.setattr("collectors.collector.register_all", register)
        file = home / "memtrend.toml"
        file.write_text(file.read_text().replace("schedules.nightly", "schedules.weekly"))
        told(db, "the changed configuration is in force", NAME)
    assert "no space left on its disk" in caplog.text
    assert {state.name for state in queries.schedules(db) if state.enabled} == {"weekly"}


def test_half_a_file_is_not_taken_for_a_broken_one(home):
    """A file that is still being written is read once it rests."""
    watched = SettingsFile()
    text = (home / "memtrend.toml").read_text()
    (home / "memtrend.toml").write_text(text[: len(text) // 2] + '"')
    assert watched.reread() is None
    (home / "memtrend.toml").write_text(text.replace("trials = 2", "trials = 3"))
    assert watched.reread() is None
    assert watched.reread().schedules["nightly"].trials == 3
    assert watched.reread() is None


def test_a_wrong_configuration_stops_the_start(home):
    """What is wrong at the start is refused at once."""
    (home / "memtrend.toml").write_text('[schedules.nightly]\ncron = "0 3 30 2 *"\nsuites = ["smoke"]\n')
    with pytest.raises(SettingsError, match=r"schedules.nightly"):
        collect(stop=threading.Event())
