"""The policy of a suite, where its file and the record meet."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from collectors import policy
from collectors.configured import configured, load_suite
from collectors.doctor import check_all
from store import writes
from store.errors import StoreError
from tests.collectors.playground import case, project, write_suite

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.shelf]
type = "tests.collectors.odd_backends:Shelf"
[suites.small]
path = "small.jsonl"
"""
LINES = [case("amber"), case("basil"), case("cedar")]
CHANGED = [case("amber", query="which door, amber?"), case("basil"), case("daisy")]
SOON = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}"


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """A project whose suite is in the record as it was first written."""
    monkeypatch.chdir(project(tmp_path, CONFIG, LINES))
    return configured()


@pytest.fixture
def known(db, settings):
    policy.register(db, settings, "small")
    return settings


def rewrite(tmp_path, lines):
    write_suite(tmp_path / "small.jsonl", lines)


def test_a_first_version_needs_no_reason(db, settings):
    """Before the first version there was nothing that could have changed; a suite of ours is ours to tell."""
    assert policy.complaints(db, settings) == []
    policy.register(db, settings, "small")
    assert policy.complaints(db, settings) == []


def test_what_nobody_accounted_for(db, known, tmp_path):
    """A line that is gone and a version without a reason are named until somebody accounts for them."""
    rewrite(tmp_path, CHANGED)
    gone, unexplained = policy.complaints(db, known)
    assert "case-cedar is gone without a word" in gone
    assert "memtrend suite retire case-cedar --suite small" in gone
    assert "memtrend suite log small --reason" in unexplained
    writes.decide_case(db, "small", "case-cedar", "retired", reason="the box is sold", author="noor")
    policy.explain(db, known, "small", "doors were renumbered", "noor")
    assert policy.complaints(db, known) == []


def test_a_retired_case_that_is_asked(db, known):
    """A case that was retired while its line still stands in the file is named."""
    writes.decide_case(db, "small", "case-cedar", "retired", reason="sold", author="noor")
    (line,) = policy.complaints(db, known)
    assert "case-cedar is retired and still asked" in line


def test_a_quarantine_that_ended(db, known):
    """A quarantine whose day has passed is named, with the owner."""
    end = datetime.now(UTC) + timedelta(hours=1)
    given = {"reason": "flaky", "author": "noor", "owner": "jo", "expires": end}
    writes.decide_case(db, "small", "case-cedar", "quarantine", **given)
    assert policy.complaints(db, known) == []
    with db.write() as connection:
        connection.exec_driver_sql("UPDATE case_state SET expires = '2026-01-01 00:00:00.000000'")
    (line,) = policy.complaints(db, known)
    assert "quarantine of case-cedar has ended" in line
    assert "jo mends it" in line


def test_difference(db, known, tmp_path):
    """A changed case is a new question: a difference tells the cases added, gone and changed, which of them
    were deleted, and how many a comparison still pairs and drops."""
    rewrite(tmp_path, CHANGED)
    suite = load_suite(known, "small")
    found = policy.difference(db, suite)
    assert (found.added, found.removed, found.changed, found.deleted, found.paired, found.dropped) == (
        ["case-daisy"], ["case-cedar"], ["case-amber"], ["case-cedar"], 1, 4,
    )  # fmt: skip
    policy.register(db, known, "small")
    assert policy.difference(db, suite, found.old[:6]) == found
    with pytest.raises(StoreError, match="no other version 77"):
        policy.difference(db, suite, "77")


def test_run_and_doctor_say_so(known, tmp_path, ask):
    """`run` says on stderr what nobody accounted for, and runs; `doctor` finds it bad."""
    assert ask(tmp_path, "run", "--suite", "small").returncode == 0
    rewrite(tmp_path, CHANGED)
    ran = ask(tmp_path, "run", "--suite", "small")
    assert ran.returncode == 0
    assert "case-cedar is gone without a word" in ran.stderr
    bad = [check for check in check_all() if check.name == "policy of the suites" and not check.ok]
    assert len(bad) == 2


@pytest.fixture
def done(tmp_path, ask):
    """A project whose suite ran once and was then changed."""
    project(tmp_path, CONFIG, LINES)
    assert ask(tmp_path, "run", "--suite", "small").returncode == 0
    rewrite(tmp_path, CHANGED)
    return tmp_path


@pytest.fixture
def asked(ask, done):
    """The document that a command about suites prints."""

    def call(*arguments):
        ran = ask(done, "suite", *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return call


def test_commands(asked):
    """`suite diff`, `log`, `cases`, `quarantine`, `release` and `retire` print one document each; what was
    decided stands in the log with author and date."""
    diff = asked("diff", "small")
    assert (diff["added"], diff["deleted"], diff["dropped"]) == (["case-daisy"], ["case-cedar"], 4)
    asked("log", "small", "--reason", "doors were renumbered")
    given = ("--owner", "jo", "--reason", "two answers", "--until", SOON)
    (told,) = asked("quarantine", "case-basil", *given)["cases"]
    assert (told["standing"], told["owner"], told["gates"]) == ("quarantine", "jo", False)
    assert told["expires"] == f"{SOON}T00:00:00Z"
    asked("retire", "case-cedar", "--reason", "sold")
    assert {row["case"]: row["standing"] for row in asked("cases", "small")["cases"]} == {
        "case-amber": "trial", "case-basil": "quarantine", "case-daisy": "trial", "case-cedar": "retired",
    }  # fmt: skip
    asked("release", "case-basil", "--reason", "one answer now")
    log = asked("log", "small")["log"]
    assert [(row["what"], row["reason"]) for row in log] == [
        ("released", "one answer now"),
        ("retired", "sold"),
        ("quarantine", "two answers"),
        ("version", "doors were renumbered"),
        ("version", None),
    ]
    assert all(row["author"] and row["at"] for row in log[:4])


def test_for_people(done, ask):
    """Without --json they are lists and tables."""
    diff = ask(done, "suite", "diff", "small").stdout
    assert "+ case-daisy\n− case-cedar  deleted, not retired\n~ case-amber\n" in diff
    assert "1 cases are the same; a comparison drops 4" in diff
    assert "nobody said" in ask(done, "suite", "log", "small").stdout
    assert "trial" in ask(done, "suite", "cases", "small").stdout


def test_refusals(done, ask):
    """Without a reason, owner or end, for a case or suite that is not known: usage, or no answer."""
    for code, *arguments in [
        (2, "retire", "case-amber"),
        (2, "quarantine", "case-amber", "--reason", "flaky"),
        (1, "retire", "case-amber", "--reason", " "),
        (3, "retire", "case-zebra", "--reason", "gone"),
        (2, "log", "large"),
        (2, "quarantine", "case-amber", "--reason", "x", "--owner", "jo", "--until", "some day"),
    ]:
        assert ask(done, "suite", *arguments).returncode == code, arguments
