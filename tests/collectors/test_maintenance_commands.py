"""Backup, restore, prune and rename on the command line."""

import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from store import models as m
from store import queries, retention, writes
from store.sections import RetentionSection
from tests.collectors.playground import CONFIG, launch, one_document, opened


@pytest.fixture
def ran(folder, ask):
    """A folder with two runs of an hour ago."""
    assert ask(folder, "run", "--suite", "small", "--backend", "bare").returncode == 0
    assert ask(folder, "run", "--suite", "small", "--backend", "bare", "--tag", "keys").returncode == 0
    return folder


def _aged(folder):
    with closing(opened(folder)) as db, db.write() as connection:
        connection.execute(m.run.update().values(started_at=datetime.now(UTC) - timedelta(days=100)))


def test_there_and_back(ran, ask):
    """A backup is a file that restore puts back; each prints one document with --json."""
    made = one_document(ask(ran, "backup", "copy.db", "--json"))
    assert (made["path"], made["runs"]) == ("copy.db", 2)
    refused = ask(ran, "backup", "copy.db")
    assert (refused.returncode, "--force" in refused.stderr) == (1, True)
    ask(ran, "mark", "later")
    done = one_document(ask(ran, "restore", "copy.db", "--json"))
    assert done["kept"] == str(ran / "record.db.before-restore")
    with closing(opened(ran)) as db:
        assert queries.marks(db) == []


def test_no_record_to_copy(folder, ask):
    """Where there is no record, backup ends with 3 and names where it looked; no record is made."""
    refused = ask(folder, "backup", "copy.db")
    assert refused.returncode == 3
    assert f"no record at {folder / 'record.db'}: " in refused.stderr
    assert not {"copy.db", "record.db"} & {file.name for file in folder.iterdir()}


def test_restore_waits_for_nobody_dead(ran, ask):
    """What a killed process held does not keep a record from being restored."""
    ask(ran, "backup", "copy.db")
    with closing(opened(ran)) as db:
        from collectors.lease import whoami

        machine = whoami().rpartition(":")[0]
        writes.acquire_lease(db, "collector", f"{machine}:{2**22 + 1}", 60)  # beyond the last pid
    assert ask(ran, "restore", "copy.db").returncode == 0


def test_prune_says_what_it_would_do(ran, ask):
    """--dry-run names the runs and removes nothing; without it they lose their texts, as show says."""
    (ran / "memtrend.toml").write_text(CONFIG + '[retention]\ndetails = "90d"\n')
    _aged(ran)
    named = one_document(ask(ran, "prune", "--dry-run", "--json"))
    assert (named["details"], named["results"]["runs"]) == ({"after": "90d", "runs": [2]}, [])
    assert "details (90d): 1 runs" in ask(ran, "prune", "--dry-run").stdout
    assert "removed" not in ask(ran, "show", "2").stdout
    assert "retention removed the texts of 1 run" in ask(ran, "prune").stdout
    assert ask(ran, "prune").stdout == "nothing is old enough to be removed\n"
    assert "its texts were removed by retention after 90 d" in ask(ran, "show", "2").stdout
    assert one_document(ask(ran, "show", "2", "--json"))["removed"] == {"details": "90d"}


def test_a_record_that_keeps_everything(ran, ask, monkeypatch):
    """Without an age nothing is removed, prune says what would be, and doctor does once the record is big."""
    assert "[retention] details" in ask(ran, "prune").stdout
    assert "[retention] details" in ask(ran, "prune", "--dry-run").stdout
    with closing(opened(ran)) as db:
        assert retention.advice(db, RetentionSection()) == ""
        monkeypatch.setattr(retention, "GROWN", 1000)
        assert 'details = "180d"' in retention.advice(db, RetentionSection())
        assert retention.advice(db, RetentionSection(details="90d")) == ""


def test_the_collector_prunes_by_itself(ran):
    """A collector removes what is too old when it starts, and an event says what."""
    (ran / "memtrend.toml").write_text(CONFIG + '[retention]\ndetails = "90d"\n')
    _aged(ran)
    process = launch(ran, "collect")
    try:
        with closing(opened(ran)) as db:
            while not (told := [one for one in queries.events(db) if "retention removed" in one.message]):
                assert process.poll() is None
                time.sleep(0.05)
        assert told[0].message.startswith("retention removed the texts of 1 run")
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("given", ['details = "5m"', 'results = "soon"', 'texts = "90d"'])
def test_what_is_no_age_is_refused(folder, ask, given):
    """An age below a day, no age at all, or another key stops with its name."""
    (folder / "memtrend.toml").write_text(f"{CONFIG}[retention]\n{given}\n")
    refused = ask(folder, "prune")
    assert (refused.returncode, f"retention.{given.split()[0]}" in refused.stderr) == (2, True)


def test_rename(ran, ask):
    """A backend gets another name with all of its runs, and stderr says what is left to do."""
    done = ask(ran, "backend", "rename", "bare", "bare2", "--json")
    assert one_document(done) == {"old": "bare", "new": "bare2", "runs": 2, "control": None}
    assert "rename [backends.bare] to [backends.bare2] in memtrend.toml" in done.stderr
    assert ask(ran, "backend", "rename", "bare", "other").returncode == 1
    assert ask(ran, "backend", "rename", "bare2", "no name").returncode == 2
