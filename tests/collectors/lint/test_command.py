"""`memtrend lint`: what scripts rely on."""

import json

import pytest

from collectors.lint.noting import note
from collectors.suite import SuiteConfig, load
from store import queries
from tests.collectors.lint.conftest import NEAR, case
from tests.collectors.playground import project, write_suite

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.shelf]
type = "keyword"
[suites.small]
path = "small.jsonl"
"""
SOUND = [case("kettle"), case("ladder", query="What do I climb?", expect_any=["in the loft"])]
BAD = [case("kettle"), case("organ", query="Who plays?", expect_any=["organ"]), case("k", query="Boil?", k=0)]
WARNED = [case("desk", query="Whom do I write to?", writes=[*NEAR, "Write to odd@havnekontoret.no."])]


@pytest.fixture
def folder(tmp_path):
    return project(tmp_path, CONFIG, SOUND)


def test_a_sound_suite_is_fine(ask, folder):
    """Without findings the exit code is 0, and the command says what a run plants and asks."""
    done = ask(folder, "lint", "small")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "small: 2 cases, 0 errors, 0 warnings",
        "  a run plants 8 memories and asks 2 questions, in 4 calls",
    ]


def test_errors_exit_1_and_say_all(ask, folder):
    """Each finding tells place, case, rule, why it matters and what to do."""
    write_suite(folder / "small.jsonl", BAD)
    done = ask(folder, "lint", "small.jsonl")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "small.jsonl:2: error: organ: 'organ' is in nothing planted before the question [underivable]"
    )
    assert "a good memory loses the case. Plant it before the question" in lines[1]
    assert lines[2].startswith("small.jsonl:3: error: k: k: ")
    assert lines[-1] == "small: 2 errors, 0 warnings; it cannot be loaded"


def test_warnings_alone_exit_0(ask, folder):
    """A warning is told, and fails nothing."""
    write_suite(folder / "small.jsonl", WARNED)
    done = ask(folder, "lint", "small")
    assert done.returncode == 0
    assert "1: warning: desk: looks like an e-mail address" in done.stdout
    assert "0 errors, 1 warning" in done.stdout


def test_json_is_one_document(ask, folder):
    """--json prints the findings of all that was named, each with the fields that scripts rely on."""
    write_suite(folder / "other.jsonl", BAD)
    done = ask(folder, "lint", "small", "other.jsonl", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, list(document)) == (1, ["findings", "cost"])
    assert [(f["file"], f["line"], f["case"], f["rule"], f["severity"]) for f in document["findings"]] == [
        ("other.jsonl", 2, "organ", "underivable", "error"),
        ("other.jsonl", 3, "k", "malformed", "error"),
    ]
    assert all(set(f) >= {"message", "hint"} and f["message"] and f["hint"] for f in document["findings"])
    assert document["cost"] == [
        {"suite": "small", "plants": 8, "questions": 2, "scenarios": 2, "calls": 4, "backends": []}
    ]


def test_a_folder_is_a_suite(ask, folder):
    """A folder of files is looked at as one suite."""
    write_suite(folder / "many" / "a.jsonl", SOUND[:1])
    write_suite(folder / "many" / "b.jsonl", SOUND[:1])
    done = ask(folder, "lint", "many", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["file"], finding["rule"]) == ("many/b.jsonl", "duplicate-id")


def test_floors_are_asked_when_wanted(ask, folder):
    """--floors names the cases that a floor passes, and counts those that tell a memory from both."""
    write_suite(folder / "small.jsonl", [*SOUND, case("mute", query="Horn?", expect_any=None, at_most=9)])
    done = ask(folder, "lint", "small", "--floors", "--json")
    document = json.loads(done.stdout)
    assert [(f["case"], f["rule"]) for f in document["findings"]] == [("mute", "passed-by-both")]
    assert document["floors"] == [{"suite": "small", "asked": 3, "telling": 2}]
    assert "tell a memory from both floors" in ask(folder, "lint", "small", "--floors").stdout


def test_what_is_not_there_is_a_usage_error(ask, folder):
    """A path that is neither file, folder nor suite is refused by name."""
    done = ask(folder, "lint", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'nowhere' is no file, no folder and no suite; known suites: small, golden" in done.stderr


def test_looking_makes_no_record(ask, folder):
    """Lint in a project that never ran leaves no database behind."""
    ask(folder, "lint", "small")
    assert not (folder / "record.db").exists()


def test_a_run_tells_of_errors_and_keeps_them(ask, folder):
    """`memtrend run` says how many lint errors a suite has, and the record keeps the findings; then lint says
    what a run takes, going by the last one."""
    write_suite(folder / "small.jsonl", BAD[:2])
    done = ask(folder, "run", "--suite", "small")
    assert done.returncode == 0
    assert "small: 1 lint error, 0 warnings: memtrend lint small" in done.stderr
    told = ask(folder, "lint", "small", "--json")
    (backend,) = json.loads(told.stdout)["cost"][0]["backends"]
    assert (backend["backend"], backend["run"], backend["money"]) == ("shelf", 1, 0.0)
    assert 0 < backend["minutes"] < 1


def test_a_sound_suite_is_run_in_silence(ask, folder):
    """Without errors a run has nothing to say of lint."""
    assert "lint" not in ask(folder, "run", "--suite", "small").stderr


def test_a_version_is_looked_at_once(db, tmp_path, monkeypatch):
    """Findings and floors are kept with the version, and what was looked at already is left alone."""
    path = write_suite(tmp_path / "mine.jsonl", BAD[:2])
    note(db, load(SuiteConfig("mine", path)))
    report = queries.lint_report(db, "mine")
    assert (report.errors, report.warnings, report.asked) == (1, 0, 2)
    assert [(row.file, row.line, row.case) for row in queries.findings(db, "mine")] == [
        ("mine.jsonl", 2, "organ")
    ]
    monkeypatch.setattr("collectors.lint.noting.lint", lambda suite: pytest.fail("looked at again"))
    note(db, load(SuiteConfig("mine", path)))
    assert queries.lint_report(db, "mine") == report
