"""The command line: exit codes, and the sentence that says why."""

import json
import re
import socket
import time
from importlib.metadata import version

import pytest

from collectors import cli
from store import queries, writes
from tests.collectors.playground import (
    cases,
    launch,
    one_document,
    opened,
    opened_when_there,
    project,
    with_odd,
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run --suite larg", "unknown suite 'larg'; known: small, golden, smoke, holdout, contract"),
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
        ("mark deploy --at 9999-12-31T23:59-14:00", "should lie between 1970 and 2100"),
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
    said = {command: json.loads(ran.stderr)["event"] for command, ran in told.items()}
    assert said["dashboard"] == said["up"]
    assert f"port {port} on 127.0.0.1 is taken" in said["up"]


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
    monkeypatch.setattr("collectors.tables.print_runs", lambda *rows, **told: 1 / 0)
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
