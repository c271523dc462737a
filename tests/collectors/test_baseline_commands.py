"""`memtrend baseline`: shown, made, decided about, carried in a file."""

import json
from contextlib import closing

import pytest

from collectors.commands import author
from store import queries
from tests.collectors.playground import KEYS, case, one_document, opened, project, soon, write_suite

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.mine]
type = "tests.collectors.odd_backends:Shelf"
[suites.mine]
path = "mine.jsonl"
"""
LINES = [case(key) for key in KEYS[:6]]
SERIES = ("--suite", "mine", "--backend", "mine")


@pytest.fixture
def told(tmp_path, ask):
    """The document of a command, and its exit code."""
    folder = project(tmp_path, CONFIG, LINES, "mine")

    def call(*arguments, code=0):
        ran = ask(folder, *arguments, "--json")
        assert ran.returncode == code, ran.stderr
        return one_document(ran)

    return call


def runs(told, number):
    for _ in range(number):
        told("run", *SERIES)


def test_nothing_yet(told):
    """A series without a run has no baseline: exit 3, and an empty document."""
    found = told("baseline", "show", *SERIES, code=3)
    assert (found["recent"], found["decisions"], found["provisional"]) == ([], [], True)


def test_what_a_run_now_would_be_held_against(told):
    """The runs, what is left out and why, and who decided what for which reason."""
    runs(told, 3)
    found = told("baseline", "exclude", "2", "--reason", "the disk was full")
    assert found == told("baseline", "show", *SERIES)
    assert (found["recent"], found["anchor"]) == ([1, 3], [1, 3])
    assert found["left_out"] == [{"run": 2, "why": "excluded: the disk was full"}]
    (decided,) = found["decisions"]
    assert (decided["action"], decided["run_ids"], decided["author"]) == ("exclude", [2], author())
    assert told("baseline", "include", "2", "--reason", "it was not")["recent"] == [1, 2, 3]


def test_pin_hold_and_reset(told):
    """A pin moves the anchor, a hold stops the rolling, an intended change and a reset begin anew."""
    runs(told, 4)
    found = told("baseline", "pin", "2", "3", "--reason", "release 2")
    assert (found["anchor"], found["recent"], found["held"]) == ([2, 3], [1, 2, 3, 4], False)
    found = told("baseline", "pin", "2", "3", "--hold", "--reason", "release 2")
    assert (found["anchor"], found["recent"], found["held"]) == ([2, 3], [2, 3], True)
    found = told("baseline", "intended", "3", "--reason", "another model")
    assert (found["anchor"], found["recent"]) == ([3, 4], [3, 4])
    assert told("baseline", "reset", *SERIES, "--reason", "moved")["recent"] == []


def test_decisions_that_are_refused(told, tmp_path, ask):
    """Without a reason, for a run that is not there, and for none at all, nothing is decided."""
    runs(told, 1)
    for arguments, code, said in (
        (("pin", "1"), 2, "--reason"),
        (("pin", "1", "--reason", " "), 1, "needs a reason"),
        (("pin", "9", "--reason", "new"), 3, "no run 9"),
        (("pin", "1", "9", "--reason", "new"), 3, "no run 9"),
        (("reset", "--backend", "mine", "--reason", "new"), 2, "name the suite"),
    ):
        ran = ask(tmp_path, "baseline", *arguments)
        assert (ran.returncode, said in ran.stderr) == (code, True), ran.stderr
    assert told("baseline", "show", *SERIES)["decisions"] == []


def test_prime(told, tmp_path, ask):
    """Priming says first what it will cost, plays five trials, and all of them count from then on."""
    ran = ask(tmp_path, "baseline", "prime", *SERIES)
    assert ran.returncode == 0
    first, second, *_ = ran.stderr.splitlines()
    assert first == "5 trials of mine on mine: 60 calls; what a call costs was not measured yet"
    assert second.startswith("run 1  mine on mine: whole")
    found = told("baseline", "show", *SERIES)
    assert (found["recent"], found["primed"], found["provisional"]) == ([1], [1], True)
    with closing(opened(tmp_path)) as db:
        assert (queries.run(db, 1).trials, queries.run(db, 1).trigger) == (5, queries.PRIME)
    ran = ask(tmp_path, "baseline", "prime", *SERIES, "--trials", "2")
    assert "2 trials of mine on mine: 24 calls, about 0.0 minutes, about $0.01" in ran.stderr


# As a file


def other_folder(tmp_path, ask, lines=LINES):
    folder = tmp_path / "other"
    folder.mkdir()
    project(folder, CONFIG, lines, "mine")

    def call(*arguments, code=0):
        ran = ask(folder, *arguments, "--json")
        assert ran.returncode == code, ran.stderr
        return one_document(ran)

    return folder, call


def test_a_baseline_that_moves(told, tmp_path, ask):
    """What was exported is, once imported, the baseline of another record: the same nights, answers and
    decisions, each taken once; a run there is judged by it, and the next export has one night more."""
    told("baseline", "prime", *SERIES)
    runs(told, 1)
    told("baseline", "pin", "1", "--reason", "release")
    file = tmp_path / "base.json"
    assert told("baseline", "export", str(file), *SERIES) == {"file": str(file), "nights": 2, "cases": 6}
    folder, there = other_folder(tmp_path, ask)
    assert there("baseline", "import", str(file)) == {
        "nights": 2,
        "known": 0,
        "cases": 6,
        "unknown": 0,
        "decisions": 1,
    }
    assert there("baseline", "import", str(file))["known"] == 2
    found = there("baseline", "show", *SERIES)
    assert (found["recent"], found["primed"], found["anchor"]) == ([1, 2], [1], [1])
    assert [one["reason"] for one in found["decisions"]] == ["release"]
    with closing(opened(folder)) as db, closing(opened(tmp_path)) as before:
        for run_id in (1, 2):
            rates = [queries.run(one, run_id).metrics["pass"] for one in (db, before)]
            assert rates[0] == rates[1]
    again = folder / "again.json"
    there("baseline", "export", str(again), *SERIES)
    kept = ("cases", "nights", "decisions")
    first, second = (json.loads(one.read_text()) for one in (file, again))
    assert [first[name] for name in kept] == [second[name] for name in kept]
    runs(there, 1)
    assert there("verdict", "3")["baseline"] == [1, 2]
    assert there("baseline", "export", str(again), *SERIES)["nights"] == 3


def test_a_file_overrules_no_decision(told, tmp_path, ask):
    """What was decided in a record stands, though a file with a pin is imported after it; that the file's is
    left out is said."""
    runs(told, 1)
    told("baseline", "pin", "1", "--hold", "--reason", "release")
    file = tmp_path / "base.json"
    told("baseline", "export", str(file), *SERIES)
    folder, there = other_folder(tmp_path, ask)
    runs(there, 1)
    there("baseline", "reset", *SERIES, "--reason", "new world")
    runs(there, 2)
    ran = ask(folder, "baseline", "import", str(file), "--json")
    assert (one_document(ran)["nights"], one_document(ran)["decisions"]) == (1, 0)
    assert "has decisions of its own" in ran.stderr
    found = there("baseline", "show", *SERIES)
    assert (found["recent"], found["held"]) == ([2, 3], False)
    assert [one["action"] for one in found["decisions"]] == ["reset"]


def test_a_hold_of_what_is_excluded(told, tmp_path, ask):
    """Held to a run that may stand in no baseline, a run has nothing to be held against, and that is said."""
    runs(told, 2)
    told("baseline", "pin", "1", "--hold", "--reason", "release")
    found = told("baseline", "exclude", "1", "--reason", "the disk was full")
    assert (found["recent"], found["held"]) == ([], True)
    ran = ask(tmp_path, "baseline", "show", *SERIES)
    assert (ran.returncode, "held to runs of which none" in ran.stdout) == (3, True)
    assert told("gate", *SERIES, code=3)["written"] is None


def test_cases_that_are_asked_otherwise(told, tmp_path, ask):
    """Answers to a case whose text has changed since are left out, and how many is said."""
    runs(told, 1)
    file = tmp_path / "base.json"
    told("baseline", "export", str(file), *SERIES)
    changed = [case(KEYS[0], query="which door, then?"), *LINES[1:-1]]
    _, there = other_folder(tmp_path, ask, changed)
    assert there("baseline", "import", str(file)) == {
        "nights": 1,
        "known": 0,
        "cases": 6,
        "unknown": 2,
        "decisions": 0,
    }


def test_files_that_are_refused(told, tmp_path, ask):
    """Nothing is exported of nothing, nor imported that was changed or is of an unknown backend."""
    assert ask(tmp_path, "baseline", "export", "base.json", *SERIES).returncode == 3
    runs(told, 1)
    told("baseline", "export", "base.json", *SERIES)
    file = tmp_path / "base.json"
    text = file.read_text()
    file.write_text(text.replace('"suite": "mine"', '"suite": "mind"'))
    assert "was changed" in ask(tmp_path, "baseline", "import", "base.json").stderr
    file.write_text(text)
    (tmp_path / "memtrend.toml").write_text(CONFIG.replace("backends.mine", "backends.other"))
    assert "unknown backend 'mine'" in ask(tmp_path, "baseline", "import", "base.json").stderr
    assert "cannot read" in ask(tmp_path, "baseline", "import", "none.json").stderr


def test_quarantined_and_retired_cases_travel(told, tmp_path, ask):
    """What was decided about cases goes with the file, and holds where the record does not know it."""
    runs(told, 1)
    key = KEYS[0]
    until = ("--owner", "noor", "--until", soon(), "--reason", "flaky")
    told("suite", "quarantine", f"case-{key}", "--suite", "mine", *until)
    told("suite", "retire", f"case-{KEYS[1]}", "--suite", "mine", "--reason", "sold")
    file = tmp_path / "base.json"
    told("baseline", "export", str(file), *SERIES)
    folder, there = other_folder(tmp_path, ask)
    write_suite(folder / "mine.jsonl", [LINES[0], *LINES[2:]])
    found = there("gate", *SERIES, "--baseline", str(file))
    assert (found["missing"], found["quarantined"]) == ([], [f"case-{key}"])
