"""The command line: what scripts rely on, through the installed script, in folders of their own."""

import csv
import io
import json
import re
import socket
import subprocess
import time
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import pytest

from collectors import cli
from store import queries, writes
from store.database import open_database
from tests.collectors.playground import SCRIPT, case, cases, launch, memtrend, project

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.shelf]
type = "tests.collectors.odd_backends:Shelf"
lost = "basil key"
[backends.bare]
type = "tests.collectors.odd_backends:Bare"
[suites.small]
path = "small.jsonl"
"""
LINES = [*cases(4), case("ivory", expect_any=[], expect_ids=["i"], writes=[{"id": "i", "text": "ivory"}])]
SECRET = "sk-7f3a-very-secret"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which each backend has run once: what `run --json` printed, and where."""
    folder = project(tmp_path_factory.mktemp("done"), CONFIG, LINES)
    ran = memtrend(folder, "run", "--suite", "small", "--meta", "build=412", "--mark", "agent 4.12", "--json")
    assert ran.returncode == 0, ran.stderr
    return folder, ran


@pytest.fixture
def folder(tmp_path):
    return project(tmp_path, CONFIG, LINES)


def with_odd(name, type, setting=""):
    """The configuration with one more backend."""
    return f'{CONFIG}[backends.{name}]\ntype = "tests.collectors.odd_backends:{type}"\n{setting}\n'


def opened(folder):
    return open_database(f"sqlite:///{folder / 'record.db'}")


def one_document(ran):
    """The only thing on stdout is one JSON document."""
    return json.loads(ran.stdout)


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


# Exit codes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run --suite larg", "unknown suite 'larg'; known: small, golden, smoke, contract"),
        ("run --backend mem", "unknown backend 'mem'; known: shelf, bare"),
        ("run --meta build", "--meta build: should be KEY=VALUE"),
        ("run --trials 0", "--trials"),
        ("run 3", "RUN_ID goes with --resume"),
        ("run --resume --trials 2", "--resume finishes a run as it was begun"),
        ("run --resume --tag keys", "--resume finishes a run as it was begun"),
        ("run --suite small --tag nosuchtag", "suite small: no case bears the tag 'nosuchtag'; known: keys"),
        ("runs --suite larg", "unknown suite 'larg'; known: small, golden"),
        ("runs --backend mem", "unknown backend 'mem'; known: shelf, bare"),
        ("runs --status done", "unknown status 'done'; known: running, whole, invalid, void, interrupted"),
        ("export --suite larg", "unknown suite 'larg'"),
        ("export --backend mem", "unknown backend 'mem'"),
        ("doctor mem", "unknown backend 'mem'; known: shelf, bare"),
        ("mark deploy --at noon", "'noon' should be a date or time such as 2026-03-04T09:30+01:00"),
        ("show one", "integer"),
        ("walk", "No such command 'walk'"),
        ("up --port 99999", "should be less than or equal to 65535"),
        ("up --host 300.1.1.1", "'300.1.1.1' is no address of this machine; choose another --host"),
        ("dashboard --host 300.1.1.1", "'300.1.1.1' is no address of this machine; choose another --host"),
        ("export -o nowhere/x.csv", "memtrend: cannot write nowhere/x.csv: No such file or directory"),
        ("init small.jsonl", "memtrend: cannot write small.jsonl: File exists"),
        ("run --sweet small", "No such option"),
        ("--config other.toml runs", "other.toml: no such file"),
    ],
)
def test_usage(folder, ask, arguments, said):
    """What was asked wrongly is exit code 2, with the values known, and prints nothing on stdout."""
    ran = ask(folder, *arguments.split())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in re.sub(r"\s*│\s*", " ", ran.stderr)


@pytest.mark.parametrize(
    "command", ["show 9", "show 9 --json", "rescore 9", "runs cancel 9", "export --run 9", "run --resume 9"]
)
def test_no_such_run(folder, ask, command):
    """A run that does not exist is exit code 3, whatever is asked about it."""
    ran = ask(folder, *command.split())
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == "memtrend: no run 9; memtrend runs lists them\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nspeed = 3", "limits.speed"),
        ('[backends.x]\ntype = "chrome"', "known: "),
        (
            '[backends.x]\ntype = "keyword"\ndirectry = "kept"',
            "backends.x.directry: unknown key; known: config",
        ),
        ('[backends.x]\ntpye = "keyword"', "backends.x.type: missing; is 'tpye' meant to be it?"),
        ("[backends", "not TOML"),
        ('[schedules.n]\ncron = "0 3 * * 1"\nsuites = ["small"]', "mon"),
    ],
)
def test_configuration(folder, ask, text, said):
    """A configuration that cannot be used is exit code 2, by file and key."""
    (folder / "memtrend.toml").write_text(text)
    ran = ask(folder, "runs")
    assert ran.returncode == 2
    assert "memtrend.toml" in ran.stderr
    assert said in ran.stderr


def test_broken_suite(folder, ask):
    """A line of a suite that cannot be read is exit code 2, by file, line and field, before anything runs."""
    (folder / "small.jsonl").write_text('{"id": "a", "query": "q", "expect_any": ["("]}\n')
    ran = ask(folder, "run", "--suite", "small")
    assert ran.returncode == 2
    assert "small.jsonl:1" in ran.stderr


def test_bad_configuration_of_a_doctor(folder, ask):
    """The doctor, too, ends with 2 when it is the configuration that is broken, whoever is asked about."""
    (folder / "memtrend.toml").write_text('[backends.x]\ntype = "chrome"\n')
    assert [ask(folder, *command.split()).returncode for command in ("doctor", "doctor x")] == [2, 2]


def test_missing_suite_file(folder, ask):
    """A suite whose file is missing is a sentence with the path in it once."""
    (folder / "small.jsonl").unlink()
    ran = ask(folder, "run", "--suite", "small")
    assert ran.returncode == 2
    assert ran.stderr == f"memtrend: {folder / 'small.jsonl'}: does not exist\n"


def test_dashboard_on_a_taken_port(folder, ask):
    """A dashboard alone says what `up` says of a port that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = {command: ask(folder, command, "--port", str(port)) for command in ("dashboard", "up")}
    assert told["dashboard"].returncode == told["up"].returncode == 1
    assert told["dashboard"].stderr == told["up"].stderr
    assert f"port {port} on 127.0.0.1 is taken" in told["up"].stderr


def test_nothing_to_resume(folder, ask):
    """Without an interrupted run there is no answer: nothing to finish."""
    ran = ask(folder, "run", "--resume")
    assert ran.returncode == 3
    assert "no run is interrupted: nothing to resume" in ran.stderr


def test_killed_run(folder, ask):
    """A run whose process was killed is listed as interrupted at once, not when its lease is out."""
    project(folder, with_odd("slow", "Slow", "seconds = 0.1"), cases(40))
    process = launch(folder, "run", "--suite", "small", "--backend", "slow")
    db = opened_when_there(folder, process)
    while not queries.runs(db):
        assert process.poll() is None
        time.sleep(0.02)
    db.close()
    process.kill()
    process.communicate()
    (run,) = one_document(ask(folder, "runs", "--json"))["runs"]
    assert run["status"] == "interrupted"


def test_no_database(folder, ask):
    """A database that cannot be had is exit code 1, and told with the way out."""
    (folder / "memtrend.toml").write_text('[database]\nurl = "sqlite:///nowhere/record.db"\n')
    ran = ask(folder, "runs")
    assert ran.returncode == 1
    assert "does not exist; make it first" in ran.stderr


def test_void_run(folder, ask):
    """`run` is 1 unless every run is whole, and the reason stands in the last line."""
    (folder / "memtrend.toml").write_text(with_odd("broken", "Broken"))
    ran = ask(folder, "run", "--suite", "small", "--backend", "broken", "--backend", "bare")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "run 1  small on broken: void (the server says: unknown key)" in ran.stderr
    assert "run 2  small on bare: whole" in ran.stderr


def test_busy_backend(folder, ask):
    """A backend that another run holds ends no other run: those made are told, and it is told by name."""
    db = opened(folder)
    token = writes.acquire_lease(db, writes.backend_lease("shelf"), "elsewhere:1", 60)
    ran = ask(folder, "run", "--suite", "small", "--json")
    writes.release_lease(db, writes.backend_lease("shelf"), token)
    db.close()
    assert ran.returncode == 1
    assert [(run["backend"], run["status"]) for run in one_document(ran)["runs"]] == [("bare", "whole")]
    assert "small on shelf: backend shelf is in use by another run" in ran.stderr


def test_unforeseen(folder, ask, monkeypatch):
    """Whatever goes wrong is one line; --debug shows where."""
    monkeypatch.setattr("collectors.tables.print_runs", lambda rows: 1 / 0)
    ran = ask(folder, "runs")
    assert ran.returncode == 1
    assert ran.stderr == "memtrend: division by zero\n(ZeroDivisionError; memtrend --debug shows where)\n"
    shown = ask(folder, "--debug", "runs").stderr
    assert shown.startswith("Traceback")
    assert shown.endswith("memtrend: division by zero\n")


def test_help(folder, ask):
    """Every command is listed with what it does, in the order in which one comes to need it."""
    listed = re.findall(r"(?m)^│ (\w+) +\S", ask(folder, "-h").stdout)
    assert tuple(listed[-len(cli.ORDER) :]) == cli.ORDER
    for command in ("", "up", "run"):
        assert "--no-" not in ask(folder, *command.split(), "-h").stdout


def test_version(folder, ask):
    """The version is that of the package."""
    assert ask(folder, "--version").stdout == f"memtrend {version('memtrend')}\n"


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


def opened_when_there(folder, process):
    while not (folder / "record.db").exists():
        assert process.poll() is None
        time.sleep(0.02)
    return opened(folder)


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
