"""`memtrend compare`: what it asks, runs, says and exits with, in projects and with processes of its own."""

import json
import signal
import threading
import time
from contextlib import closing

import pytest

from collectors.lease import BackendLease
from store import queries
from tests.collectors.playground import (
    cases,
    launch,
    memtrend,
    one_document,
    opened,
    opened_when_there,
    project,
    results,
)
from tests.collectors.test_control_releases import RELEASES, TWO

pytestmark = pytest.mark.usefixtures("no_pauses")

REAL = """
[database]
url = "sqlite:///record.db"
[backends.keyword]
type = "keyword"
[backends.hybrid]
type = "hybrid"
[backends.twin]
type = "hybrid"
"""
MINE = """
[database]
url = "sqlite:///record.db"
[backends.mine]
type = "tests.collectors.odd_backends:{a}"
lost = {lost}
[backends.other]
type = "tests.collectors.odd_backends:{b}"
[suites.small]
path = "small.jsonl"
"""


def mine(folder, *, a="Shelf", b="Shelf", lost="\0", lines=4):
    return project(folder, MINE.format(a=a, b=b, lost=json.dumps(lost)), cases(lines))


def of(folder):
    """All runs, oldest first."""
    with closing(opened(folder)) as db:
        return queries.runs(db, limit=None)[::-1]


# On the suites that we ship


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A record with a run of golden on each."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "memtrend.toml").write_text(REAL)
    ran = memtrend(folder, "run", "--suite", "golden")
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.parametrize(
    ("a", "b", "code", "verdict"),
    [
        ("hybrid", "twin", 0, "non_inferior"),
        ("keyword", "hybrid", 0, "better"),
        ("hybrid", "keyword", 1, "inferior"),
    ],
)
def test_what_golden_says(real, ask, a, b, code, verdict):
    """The same backend under another name is not worse by 3 points, hybrid is better than keyword, keyword
    worse than hybrid: by exit code and in one document on stdout."""
    told = ask(real, "compare", a, b, "--suite", "golden", "--no-run", "--json")
    document = one_document(told)
    assert (told.returncode, document["verdict"], document["margin"]) == (code, verdict, 0.03)
    assert document["cases"] > 300
    assert (document["a"]["name"], document["b"]["name"]) == (a, b)


def test_in_words(real, ask):
    """On the terminal: the sentence, the interval, what was lost and why, tags, times and what differs."""
    told = ask(real, "compare", "hybrid", "keyword", "--suite", "golden", "--no-run").stdout
    assert "keyword is worse than hybrid on golden" in told.splitlines()[0]
    for part in ("cannot be ruled out", "lost: ", "returned but too low", "by tag", "recall time, median",
                 "type hybrid → keyword", "not compared"):  # fmt: skip
        assert part in told
    assert "Skua" not in told, "no text of a memory, unless it is asked for"


def test_with_texts(real, ask):
    """--include-text adds what was asked and what came back on both sides."""
    told = ask(real, "compare", "hybrid", "keyword", "--suite", "golden", "--no-run", "--include-text").stdout
    assert "asked, and what came back first" in told
    assert "Skua" in told


def test_too_few_cases(tmp_path, ask):
    """Where suite and margin cannot conclude that is said before anything runs, with what would be enough; it
    ends inconclusive, with 3. The same again takes both sides from the record, and runs nothing."""
    (tmp_path / "memtrend.toml").write_text(REAL)
    asked = ("compare", "hybrid", "twin", "--suite", "smoke", "--json")
    first = ask(tmp_path, *asked)
    assert (first.returncode, one_document(first)["verdict"]) == (3, "inconclusive")
    said = first.stderr.splitlines()
    assert said[0].startswith("20 cases cannot settle a margin of 3 points, whatever comes back: it takes 88")
    assert "now runs, in turns: smoke on hybrid and twin, 20 cases × 4 trials" in first.stderr
    again = ask(tmp_path, *asked)
    assert "twin: 4 trials from the record, run 2" in again.stderr
    assert [(row.id, row.subset, row.trials) for row in of(tmp_path)] == [
        (1, "@compare", 4),
        (2, "@compare", 4),
    ]
    assert one_document(again)["interval"] == one_document(first)["interval"]


# Which runs


def test_another_system_is_asked_anew(tmp_path, ask):
    """Runs of a configuration that is in force no more are of the past: both sides are asked again."""
    mine(tmp_path)
    asked = ("compare", "mine", "other", "--suite", "small", "--json")
    ask(tmp_path, *asked)
    mine(tmp_path, lost="basil key")
    document = one_document(ask(tmp_path, *asked))
    assert (document["a"]["runs"], document["b"]["runs"]) == ([3], [4])
    assert document["gained"] == ["case-basil"]


def test_against_a_run(tmp_path, ask):
    """A side of the past is taken as it is, and the other one asked alone."""
    mine(tmp_path)
    ask(tmp_path, "run", "--suite", "small", "--backend", "other", "--trials", "4")
    told = ask(tmp_path, "compare", "1", "mine", "--suite", "small", "--json")
    assert "1: 4 trials from the record, run 1" in told.stderr
    assert "now runs: small on mine, 4 cases × 4 trials" in told.stderr
    assert [(row.backend, row.subset) for row in of(tmp_path)] == [("other", ""), ("mine", "@compare")]


def test_the_record_alone(tmp_path, ask):
    """With --no-run what is missing is told, and nothing is run."""
    told = ask(mine(tmp_path), "compare", "mine", "other", "--suite", "small", "--no-run")
    assert (told.returncode, told.stdout) == (3, "")
    assert "no whole run of small on mine" in told.stderr
    release = ask(tmp_path, "compare", "mine@1.0", "other", "--suite", "small")
    assert (release.returncode, "where the backend has a package" in release.stderr) == (3, True)
    assert of(tmp_path) == []


@pytest.fixture
def deployed(tmp_path, ask):
    """Four trials, a deploy, and four trials of what it broke; a mark of the same text before all that."""
    mine(tmp_path, lines=8)
    ask(tmp_path, "mark", "deploy 41", "--at", "2026-01-01")
    ask(tmp_path, "run", "--suite", "small", "--backend", "mine", "--trials", "4")
    ask(tmp_path, "mark", "deploy 41")
    mine(tmp_path, lost="key opens", lines=8)
    ask(tmp_path, "run", "--suite", "small", "--backend", "mine", "--trials", "4")
    return tmp_path


def test_what_a_deploy_did(deployed, ask):
    """A mark alone serves both sides, the newest of its text, which is said; the backend is the only one that
    the suite was run on. Nothing is run."""
    told = ask(deployed, "compare", "--suite", "small", "--before", "deploy 41", "--json")
    document = one_document(told)
    assert (told.returncode, document["verdict"], len(document["lost"])) == (1, "inferior", 8)
    assert (document["a"]["name"], document["b"]["name"]) == ("mine before deploy 41", "mine after deploy 41")
    assert "2 marks say 'deploy 41': the newest is meant" in told.stderr
    same = ask(deployed, "compare", "mine", "--suite", "small", "--before", "1", "--after", "2", "--json")
    assert one_document(same)["interval"] == document["interval"]
    twice = ask(deployed, "compare", "1", "1", "--suite", "small")
    assert (twice.returncode, "1 and 1 are the same runs (run 1)" in twice.stderr) == (2, True)
    assert "@compare" not in {row.subset for row in of(deployed)}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ["mine", "--before", "deploy 99"],
            "'deploy 99' is no mark and no day; the newest marks: 'deploy 41'",
        ),
        (["mine", "other", "--before", "deploy 41"], "--before and --after are of one backend"),
        (["mine", "--before", "1"], "1 names runs: name the other side too"),
        (["mine"], "name two sides"),
        (["mine", "mine"], "both sides are mine"),
        (["mine@", "other"], "names no side"),
        (["mine", "other", "--suite", "none"], "unknown suite 'none'"),
        (["mine", "other", "--html", "none/there.html"], "cannot write none/there.html"),
        (["mine", "other", "--margin", "0"], "greater than or equal to 0.001"),
    ],
)
def test_what_is_no_question(tmp_path, ask, asked, said):
    """What cannot be asked is refused with 2 and what to ask instead, before anything is run."""
    ask(mine(tmp_path), "mark", "deploy 41")
    suite = [] if "--suite" in asked else ["--suite", "small"]
    told = ask(tmp_path, "compare", *asked, *suite)
    assert (told.returncode, told.stdout) == (2, "")
    assert said in " ".join(told.stderr.replace("│", " ").split())
    assert of(tmp_path) == []


# What goes wrong


@pytest.mark.parametrize(
    ("b", "more", "said"),
    [
        ("Broken", "", "no answer: run 1  small on other: void"),
        ("Refusing", 'word = "door"\n', "run 2  small on other: invalid (16 of 16 answers were errors"),
    ],
)
def test_no_answer(tmp_path, ask, b, more, said):
    """A side that is void or invalid leaves no answer: 3 and the reason; the other's run is kept, whole."""
    config = (mine(tmp_path, b=b) / "memtrend.toml").read_text()
    (tmp_path / "memtrend.toml").write_text(config.replace("[suites", f"{more}[suites"))
    told = ask(tmp_path, "compare", "mine", "other", "--suite", "small", "--json")
    assert (told.returncode, told.stdout) == (3, "")
    assert said in told.stderr
    assert all(row.status == "whole" for row in of(tmp_path) if row.backend == "mine")
    assert ("run 1 is whole and is kept" in told.stderr) == (b == "Refusing")


def test_while_another_has_a_backend(tmp_path, ask):
    """A backend in use is no verdict: 3, which run has it, and how the record alone is asked."""
    mine(tmp_path)
    with closing(opened(tmp_path)) as db, BackendLease(db, "other", threading.Event()):
        told = ask(tmp_path, "compare", "mine", "other", "--suite", "small")
    assert told.returncode == 3
    assert "backend other is in use" in told.stderr
    assert "--no-run asks the record alone" in told.stderr


def test_over_the_days_money(tmp_path, ask):
    """What would cost more than a whole day may is refused with 2, and nothing is run."""
    mine(tmp_path)
    ask(tmp_path, "run", "--suite", "small")
    with (tmp_path / "memtrend.toml").open("a") as file:
        file.write("[limits]\nmoney_per_day = 0.01\n")
    told = ask(tmp_path, "compare", "mine", "other", "--suite", "small")
    assert (told.returncode, told.stdout) == (2, "")
    assert "more than limits.money_per_day = 0.01" in told.stderr
    assert len(of(tmp_path)) == 2


# Stopped and killed, for real


def begun(folder, cases_done):
    """A comparison in a process of its own that has answered so many cases on each side."""
    mine(folder, a="Slow", b="Slow")
    process = launch(folder, "compare", "mine", "other", "--suite", "small", "--json")
    with closing(opened_when_there(folder, process)) as db:
        while len(rows := queries.runs(db)) < 2 or min(row.cases_done for row in rows) < cases_done:
            assert process.poll() is None, process.communicate()
            time.sleep(0.2)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed(tmp_path, ask, number):
    """^C ends it with 130 and a kill -9 without a word: either way both runs are interrupted with what they
    had, and the same comparison goes on with them to the end."""
    process = begun(tmp_path, 3)
    process.send_signal(number)
    out, said = process.communicate(timeout=90)
    assert (process.returncode, out) == ({signal.SIGINT: 130, signal.SIGKILL: -9}[number], "")
    assert number == signal.SIGKILL or "the same command goes on with it" in said
    before = {row.id: row.cases_done for row in of(tmp_path)}
    told = ask(tmp_path, "compare", "mine", "other", "--suite", "small", "--json")
    assert told.returncode == 3, "four cases settle nothing"
    assert "going on with run 1 and run 2, which were interrupted" in told.stderr
    assert [(row.id, row.status, row.cases_done) for row in of(tmp_path)] == [
        (1, "whole", 16),
        (2, "whole", 16),
    ]
    assert all(3 <= done < 16 for done in before.values())
    with closing(opened(tmp_path)) as db:
        assert len(results(db, 1)) == len(results(db, 2)) == 16


# Another release, for real


def test_what_an_upgrade_would_do(tmp_path, ask):
    """A release without runs is run in an environment of its own, in turns with what is in use, under a name
    of its own; asked again nothing is run."""
    config = RELEASES.replace('control = "six==1.16.0"\n', "").replace("six==1.17.0", "six==1.16.0")
    project(tmp_path, config, cases(4))
    (tmp_path / "two.py").write_text(TWO)
    asked = ("compare", "new", "new@1.17.0", "--suite", "small", "--json")
    document = one_document(ask(tmp_path, *asked))
    assert (document["lost"], document["b"]["backend"]) == (["case-basil"], "new@1.17.0")
    assert {"name": "six", "old": "1.16.0", "new": "1.17.0"} in document["suspects"]
    again = ask(tmp_path, *asked)
    assert "new@1.17.0: 4 trials from the record, run 2" in again.stderr
    assert [row.backend for row in of(tmp_path)] == ["new", "new@1.17.0"]
