"""The command line: what scripts rely on, through the installed script, in folders of their own."""

import csv
import io
import json
import re
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest

from store import queries
from tests.collectors.playground import (
    CONFIG,
    LINES,
    SCRIPT,
    case,
    cases,
    launch,
    memtrend,
    one_document,
    opened,
    opened_when_there,
    project,
    with_odd,
)

SECRET = "sk-7f3a-very-secret"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which each backend has run once: what `run --json` printed, and where."""
    folder = project(tmp_path_factory.mktemp("done"), CONFIG, LINES)
    ran = memtrend(folder, "run", "--suite", "small", "--meta", "build=412", "--mark", "agent 4.12", "--json")
    assert ran.returncode == 0, ran.stderr
    return folder, ran


# Shapes


def test_run_json(done):
    """`run --json` prints the runs that it made, in the shape of `runs --json`; progress is on stderr."""
    folder, ran = done
    told = one_document(ran)["runs"]
    assert [(run["id"], run["backend"]) for run in told] == [(2, "bare"), (1, "shelf")]
    assert "run 1  small on shelf: whole, 80.0 % pass" in ran.stderr
    assert told == one_document(memtrend(folder, "runs", "--json"))["runs"]


def test_runs_json(done):
    """Each run has its id, suite and version, backend, status, times, and metrics with intervals and n."""
    run = one_document(done[1])["runs"][1]
    assert {
        name: run[name] for name in ("suite", "status", "trials", "meta", "cases_done", "cases_total")
    } == {
        "suite": "small",
        "status": "whole",
        "trials": 1,
        "meta": {"build": "412"},
        "cases_done": 5,
        "cases_total": 5,
    }
    assert re.fullmatch(r"[0-9a-f]{16}", run["suite_version"])
    for name in ("started_at", "finished_at"):
        at = datetime.fromisoformat(run[name])
        assert timedelta(0) <= datetime.now(UTC) - at < timedelta(hours=1)
    low, high = pytest.approx(0.376, abs=0.01), pytest.approx(0.964, abs=0.01)
    assert run["metrics"]["pass"] == {"mean": 0.8, "low": low, "high": high, "n": 5}
    assert all(set(rolled) == {"mean", "low", "high", "n"} for rolled in run["metrics"].values())


def test_show_json(done, ask):
    """`show RUN --json` is one run with its cases; what was not judged has passed neither way."""
    told = one_document(ask(done[0], "show", "2", "--json"))
    assert (told["id"], told["backend"]) == (2, "bare")
    found = {row["case"]: row for row in told["cases"]}
    assert found.keys() == {line["id"] for line in LINES}
    assert {"case", "tags", "passed", "status", "failure"} <= found["case-amber"].keys()
    assert (found["case-amber"]["passed"], found["case-amber"]["tags"]) == (True, ["keys"])
    assert (found["case-ivory"]["passed"], found["case-ivory"]["status"]) == (None, "skipped")


def test_for_people(done, ask):
    """Without --json runs and a run are tables, in which the lost cases stand with the reason."""
    assert re.search(r"1 +\d{4}-\d\d-\d\d \d\d:\d\d +small +shelf +whole +80\.0", ask(done[0], "runs").stdout)
    shown = ask(done[0], "show", "1").stdout
    assert re.search(r"case-basil +keys +0/1 +not stored", shown)
    assert "case-amber" not in shown


def test_filters(done, ask):
    """`runs` narrows by suite, backend and status, and by number."""
    for arguments, ids in [
        (["--backend", "shelf"], [1]),
        (["--suite", "small", "--status", "whole", "--limit", "1"], [2]),
        (["--status", "void", "--status", "running"], []),
        (["--suite", "golden"], []),
    ]:
        told = one_document(ask(done[0], "runs", "--json", *arguments))
        assert [run["id"] for run in told["runs"]] == ids


def test_runs_that_are_not_shown(done, ask, tmp_path):
    """`runs` says where it shows less than there is, that none fits, or that there is none at all."""
    cut = ask(done[0], "runs", "--limit", "1").stdout
    assert cut.endswith("1 of 2 runs; --limit N shows more\n")
    assert "--limit" not in ask(done[0], "runs", "--limit", "2").stdout
    assert ask(done[0], "runs", "--status", "running").stdout == "no run fits these options\n"
    project(tmp_path, CONFIG, LINES)
    assert ask(tmp_path, "runs").stdout == "no runs yet: memtrend run\n"


def test_show_tells_its_errors(tmp_path, ask):
    """`show` prints what a backend raised, once for equal errors, with their number."""
    project(tmp_path, with_odd("moody", "Refusing", 'kind = "permanent"\nword = "door for"'), LINES)
    ask(tmp_path, "run", "--suite", "small", "--backend", "moody")
    shown = ask(tmp_path, "show", "1").stdout
    assert shown.count("permanent trouble") == 1
    assert re.search(r"^5 errors: .*permanent trouble", shown, re.MULTILINE)


def test_marks_and_meta(done):
    """`run --mark` draws a line that bears the meta data of the runs."""
    db = opened(done[0])
    (mark,) = queries.marks(db)
    db.close()
    assert (mark.text, mark.meta) == ("agent 4.12", {"build": "412"})
    assert "mark 1: agent 4.12\n" in done[1].stderr


def test_export(done, ask, tmp_path):
    """`export` is CSV on stdout, or in a file: a row for each case, and no text."""
    told = ask(done[0], "export", "--run", "1")
    rows = list(csv.DictReader(io.StringIO(told.stdout)))
    assert {(row["run"], row["backend"], row["case"]) for row in rows} == {
        ("1", "shelf", line["id"]) for line in LINES
    }
    assert "opens" not in told.stdout
    ran = ask(done[0], "export", "--backend", "shelf", "--output", str(tmp_path / "cases.csv"))
    assert (ran.stdout, ran.stderr) == ("", f"5 rows in {tmp_path / 'cases.csv'}\n")
    assert list(csv.DictReader(io.StringIO((tmp_path / "cases.csv").read_text()))) == rows


def test_pipe_that_closes(done):
    """A reader that has seen enough ends a command without a word."""
    piped = f"'{SCRIPT}' export | true"
    ran = subprocess.run(["bash", "-c", piped], cwd=done[0], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("", "")


def test_backends(done, ask):
    """`backend list` and `backend types` say what is configured, and what could be."""
    listed = one_document(ask(done[0], "backend", "list", "--json"))["backends"]
    assert {(row["name"], row["type"].rpartition(":")[2]) for row in listed} == {
        ("shelf", "Shelf"),
        ("bare", "Bare"),
    }
    assert "release  control  owner" in ask(done[0], "backend", "list").stdout
    types = one_document(ask(done[0], "backend", "types", "--json"))["types"]
    assert {"keyword", "dense", "hybrid", "nothing", "everything", "mem0"} <= set(types)


# From nothing


def test_init(tmp_path, ask):
    """`init` writes a project in which the commands that it names work; again, it refuses."""
    ran = ask(tmp_path, "init")
    assert ran.returncode == 0
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "memtrend.toml",
        "mine.jsonl",
    ]
    check, run, up = [re.sub("#.*", "", line).split() for line in ran.stdout.splitlines()[-3:]]
    assert up == ["memtrend", "up"]
    examined = memtrend(tmp_path, *check[1:])
    assert (examined.returncode, "BAD" in examined.stdout) == (0, False)
    asked = memtrend(tmp_path, *run[1:])
    assert (asked.returncode, asked.stdout) == (0, "")
    assert len(re.findall(r"(?m)^run \d  mine on \w+: whole, ", asked.stderr)) == 5
    before = (tmp_path / "memtrend.toml").read_bytes()
    again = ask(tmp_path, "init")
    assert (again.returncode, again.stdout) == (2, "")
    assert "memtrend.toml is there already" in again.stderr
    assert (tmp_path / "memtrend.toml").read_bytes() == before


def test_own_adapter(tmp_path, ask):
    """`init --backend NAME` writes an adapter that the lines it prints make a backend of."""
    ran = ask(tmp_path, "init", "--backend", "notes")
    wrote, _, section, type_, then = ran.stdout.splitlines()
    assert (wrote, then) == ("wrote notes.py", "then: memtrend doctor notes")
    (tmp_path / "memtrend.toml").write_text(f"{section.strip()}\n{type_.strip()}\n")
    found = one_document(memtrend(tmp_path, "doctor", "notes", "--json"))["checks"]
    assert {check["name"]: check["ok"] for check in found}["recall"] is True
    assert {"name", "ok", "detail", "advice"} == found[0].keys()


def test_adapter_that_is_not_configured(folder, ask):
    """Asked for a backend whose adapter lies there, memtrend gives the lines that are missing."""
    ask(folder / "..", "init", "--backend", "notes", str(folder))
    (folder / "memtrend.toml").write_text(CONFIG)
    for command in ("doctor notes", "run --backend notes"):
        ran = ask(folder, *command.split())
        assert ran.returncode == 2
        assert ran.stderr.splitlines() == [
            "memtrend: unknown backend 'notes'; known: shelf, bare",
            "notes.py is here; add to memtrend.toml:",
            "[backends.notes]",
            'type = "notes:Notes"',
        ]


def test_tour(tmp_path, ask):
    """The tour of the README: after `init` and `init --backend ours`, `ours` is asked and gives an answer."""
    ask(tmp_path, "init")
    ask(tmp_path, "init", "--backend", "ours")
    ran = memtrend(tmp_path, "run", "--suite", "mine", "--backend", "ours", "--json")
    (run,) = one_document(ran)["runs"]
    assert run["status"] == "whole"
    assert 0 < run["metrics"]["pass"]["mean"] < 1


# Commands that change something


def test_mark(folder, ask):
    """`mark` draws a line, now or at a moment of any zone, with data of its own."""
    ran = ask(folder, "mark", "deploy 4.13", "--at", "2026-03-04T09:30+01:00", "--meta", "by=noor")
    assert ran.stdout == "mark 1: deploy 4.13\n"
    ask(folder, "mark", "now")
    db = opened(folder)
    first, second = queries.marks(db)
    db.close()
    assert (first.text, first.meta) == ("deploy 4.13", {"by": "noor"})
    assert first.at == datetime(2026, 3, 4, 8, 30, tzinfo=UTC)
    assert datetime.now(UTC) - second.at < timedelta(minutes=5)


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "a\u202eb", "x" * 501])
def test_a_mark_that_says_nothing(folder, ask, text):
    """A mark whose text is empty, long or not one line is refused, by `run` before anything runs."""
    for command in (("mark", text), ("run", "--suite", "small", "--mark", text)):
        ran = ask(folder, *command)
        assert ran.returncode == 2
        assert "the text of a mark should" in ran.stderr
    assert not (folder / "memtrend.db").exists()


def test_marks_keep_no_secret(folder, ask):
    """What looks like a secret, by its name or its look, is not kept with a mark."""
    ask(folder, "mark", "by https://noor:hunter22@host/", "--meta", "token=abc", "--meta", "build=412")
    db = opened(folder)
    (mark,) = queries.marks(db)
    db.close()
    assert (mark.text, mark.meta) == ("by https://noor:***@host/", {"token": "***", "build": "412"})


def test_a_mark_stands_within_a_lifetime(folder, ask):
    """A time that would stretch every axis to nothing is refused."""
    for at in ("0001-01-01", "9999-12-31"):
        assert "between 1970 and 2100" in ask(folder, "mark", "x", "--at", at).stderr


def test_rescore(folder, ask):
    """`rescore` scores the runs named again, and by default those of an older scorer: none here."""
    ask(folder, "run", "--suite", "small", "--backend", "shelf")
    nothing = ask(folder, "rescore")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert nothing.stderr.startswith("nothing to rescore: every run has the scores of today's scorers")
    assert ask(folder, "rescore", "1").stdout.startswith("run 1: 5 answers scored by version ")


def test_tag(folder, ask):
    """`run --tag` asks the cases of the tag alone; its run enters no series, and the whole stays in force."""
    project(folder, CONFIG, [*cases(2), case("cedar", tags=["odd"])])
    assert ask(folder, "run", "--suite", "small", "--backend", "bare").returncode == 0
    ran = ask(folder, "run", "--suite", "small", "--backend", "shelf", "--tag", "odd", "--json")
    (run,) = one_document(ran)["runs"]
    assert (run["subset"], run["cases_done"], run["cases_total"]) == ("odd", 1, 1)
    db = opened(folder)
    assert [point.backend for point in queries.trend(db, "small", "pass")] == ["bare"]
    assert len(queries.suite_cases(db, "small")) == 3
    db.close()


def test_cancel(folder, ask):
    """`runs cancel` stops the run that is going on and not those after it; `run` then is 1."""
    project(folder, with_odd("slow", "Slow", "seconds = 0.1"), cases(40))
    process = launch(folder, "run", "--suite", "small", "--backend", "slow", "--backend", "bare", "--json")
    db = opened_when_there(folder, process)
    while not (rows := queries.runs(db)) or rows[0].cases_done < 2:
        assert process.poll() is None
        time.sleep(0.02)
    cancelled = memtrend(folder, "runs", "cancel", "1")
    assert (cancelled.returncode, cancelled.stdout) == (0, "run 1 stops at its next step\n")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    told = {run["backend"]: (run["status"], run["reason"]) for run in json.loads(out)["runs"]}
    assert told == {"slow": ("interrupted", "cancelled"), "bare": ("whole", None)}, err
    assert queries.events(db)[0].message == "cli cancelled run 1"
    db.close()
    again = ask(folder, "runs", "cancel", "1")
    assert (again.returncode, "run 1 is not running" in again.stderr) == (1, True)


# What must not be seen


def test_secrets(folder, ask, monkeypatch):
    """What is secret in a backend's configuration is in no output and not in the record."""
    project(folder, with_odd("keyed", "Keyed", 'config.api_key = "${env:VENDOR}"'), LINES)
    monkeypatch.setenv("VENDOR", SECRET)
    for command in ("run --suite small --backend keyed", "backend list --json", "doctor --json", "show 1"):
        ran = ask(folder, *command.split())
        assert ran.returncode == 0, ran.stderr
        assert SECRET not in ran.stdout + ran.stderr
    db = opened(folder)
    told = queries.environment(db, queries.run(db, 1).environment_id)
    assert told["config"]["config"] == {"api_key": "***"}
    db.close()
    for path in folder.glob("record.db*"):
        assert SECRET.encode() not in path.read_bytes()


def test_chatty_backend(folder, ask):
    """A backend that prints does not come between a script and its JSON."""
    project(folder, with_odd("chatty", "Chatty"), LINES)
    ran = memtrend(folder, "run", "--suite", "small", "--backend", "chatty", "--json")
    assert one_document(ran)["runs"][0]["status"] == "whole"
    assert "recall which door for the amber key" in ran.stderr
    assert one_document(ask(folder, "doctor", "chatty", "--json"))["checks"]


# The doctor


def test_doctor(folder, ask):
    """`doctor` is 1 when a backend is broken, and says what to do."""
    (folder / "memtrend.toml").write_text(CONFIG + '[backends.ours]\ntype = "ours:Ours"\n')
    ran = ask(folder, "doctor")
    assert ran.returncode == 1
    assert re.search(r"(?m)^BAD backend ours: .*: No module named 'ours'$", ran.stdout)
    assert re.search(r"(?m)^    mend \[backends.ours\] in memtrend.toml, or what it names", ran.stdout)
    assert re.search(r"(?m)^ok  backend shelf: \d+ adapter checks; memtrend doctor shelf ", ran.stdout)


def test_shadow(folder, ask):
    """A folder ./store takes nothing's place under the script, and the doctor warns of it."""
    (folder / "store").mkdir()
    (folder / "store" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    assert memtrend(folder, "runs").returncode == 0
    ran = ask(folder, "doctor")
    assert ran.returncode == 1
    assert "./store has the name of a package of memtrend" in ran.stdout
