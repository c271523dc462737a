"""The canary of a standing index: a leg that lost half its memories is seen, and never recorded as right."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from collectors.backend import NAMESPACE_PREFIX, BackendConfig, open_backend
from collectors.calls import Instance
from collectors.canary import Canary, CanaryError, NoAnswer, asked_of_source
from collectors.configured import configured
from collectors.configured import plan as planned
from collectors.rescoring import rescore
from collectors.runner import run
from collectors.scenario import play
from collectors.suite import SHIPPED, Memory, Plant, Scenario, Scope, SuiteError, load
from store import queries

NAMESPACE = f"{NAMESPACE_PREFIX}standing"
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.prod]
type = "hybrid"
directory = "index"
[backends.bare]
type = "nothing"
[suites.health]
path = "health.toml"
kind = "index_health"
"""
HEALTH = """
legs = ["keyword", "vector"]
[standing]
namespace = "{namespace}"
user = "{user}"
[[probes]]
id = "bucket"
query = "{code}"
expect_any = ["{code}"]
"""


@pytest.fixture(scope="module")
def group():
    """A group of the shipped golden suite: its plants, and the questions asked of them."""
    return next(scenario for scenario in load(SHIPPED["golden"]).scenarios if scenario.id == "software-1")


@pytest.fixture(scope="module")
def memories(group):
    return [memory for step in group.steps if isinstance(step, Plant) for memory in step.memories]


@pytest.fixture
def folder(tmp_path, memories):
    """A project whose standing index, on disk, holds what the group plants."""
    user = memories[0].user
    (tmp_path / "memtrend.toml").write_text(CONFIG)
    (tmp_path / "health.toml").write_text(HEALTH.format(namespace=NAMESPACE, user=user, code="qx-77-zulu"))
    index = open_backend(BackendConfig("prod", "hybrid", directory=tmp_path / "index"))
    index.reset(Scope(NAMESPACE))
    code = Memory("code", "the archive bucket is called qx-77-zulu", user=user)
    index.remember(Scope(NAMESPACE, user), [code, *(m for m in memories if m.user == user)])
    index.close()
    return tmp_path


@pytest.fixture
def settings(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return configured(folder / "memtrend.toml")


@pytest.fixture
def held(folder):
    return counts(folder)["keyword"]


def counts(folder):
    index = open_backend(BackendConfig("prod", "hybrid", directory=folder / "index"))
    try:
        return index.count(Scope(NAMESPACE))
    finally:
        index.close()


def lose_half_of_the_keywords(folder: Path):
    """As a re-index, newest first, that died half-way: the older half is gone, about which few ask, while the
    vectors and the memories are all there."""
    with sqlite3.connect(folder / "index" / "keyword.sqlite") as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE name GLOB 'text_[0-9]*' AND sql LIKE '%fts5%'"
        ).fetchall():
            half = connection.execute(f"SELECT (min(rowid) + max(rowid)) / 2 FROM {name}").fetchone()
            connection.execute(f"DELETE FROM {name} WHERE rowid <= ?", half)
    connection.close()


def ran(settings, db):
    outcome = run(planned(settings, "health", "prod"), db)
    assert outcome.status == "whole", outcome.reason
    return queries.run(db, outcome.run_id), {
        row.case: (row.passed, row.failure) for row in queries.run_cases(db, outcome.run_id)
    }


def recall(folder, group):
    """Mean recall@k of the group's questions, asked of the standing index as one backend."""
    questions = tuple(probe for probe in group.probes if not probe.leg)
    asked = Scenario("asked", questions, Scope(NAMESPACE, questions[0].user))
    instance = Instance(BackendConfig("prod", "hybrid", directory=folder / "index"))
    found = [answer.scores.get("recall@k") for answer in play(instance, asked, NAMESPACE).answers]
    instance.close()
    values = [value for value in found if value is not None]
    assert len(values) > 10
    return sum(values) / len(values)


def test_half_a_leg_is_red_within_one_run(settings, folder, group, db, held):
    """A keyword leg that lost half its memories turns its canary red in the next run, by its own count and
    against the other leg, while fusion hides it: overall recall falls by less than 10 points."""
    Canary(settings, "health", "prod").record(db, held, "the ticket system", "noor")
    before, healthy = recall(folder, group), ran(settings, db)
    assert {passed for passed, _ in healthy[1].values()} == {True}
    lose_half_of_the_keywords(folder)
    _, cases = ran(settings, db)
    assert cases["count/keyword"] == (False, "leg incomplete")
    assert cases["legs-agree"] == (False, "legs disagree")
    assert cases["bucket/keyword"][0] is False
    assert cases["count/vector"] == cases["bucket/vector"] == (True, None)
    assert before - recall(folder, group) < 0.10


def test_rescored(settings, db, held):
    """A later scorer judges a count by what was counted, and expected, then."""
    canary = Canary(settings, "health", "prod")
    canary.record(db, held, "crm", "noor")
    row, _ = ran(settings, db)
    canary.record(db, held - 2, "crm", "noor")
    rescore(db, row.id)
    again = queries.run(db, row.id)
    scored = ("pass", "leg_count", "leg_share")
    assert [again.metrics[name] for name in scored] == [row.metrics[name] for name in scored]


def test_nothing_recorded_is_no_number(settings, db):
    """While nothing is recorded the counts are not judged; the legs still are held against each other."""
    row, cases = ran(settings, db)
    assert cases["count/keyword"] == cases["count/vector"] == (None, None)
    assert cases["legs-agree"] == (True, None)
    assert row.metrics["leg_share"].n == 1


def test_counts_are_series(settings, folder, db, held):
    """The count of each leg, and its share of what is expected, are series under the leg's tag."""
    Canary(settings, "health", "prod").record(db, held, "the ticket system", "noor")
    ran(settings, db)
    lose_half_of_the_keywords(folder)
    ran(settings, db)
    shares = [point.mean for point in queries.trend(db, "health", "leg_share", tag="keyword")]
    assert shares == [1.0, pytest.approx(0.5, abs=0.01)]
    assert [p.mean for p in queries.trend(db, "health", "leg_count", tag="vector")] == [held, held]


def test_half_an_index_is_not_recorded(settings, folder, db, held):
    """Right after a re-index that lost half of a leg nothing can be recorded: neither what should be there,
    nor the half that is, for all legs or for that one."""
    canary = Canary(settings, "health", "prod")
    canary.record(db, held, "the ticket system", "noor")
    lose_half_of_the_keywords(folder)
    half = counts(folder)["keyword"]
    with pytest.raises(CanaryError, match=rf"keyword holds {half} of {held} memories .*the legs disagree"):
        canary.record(db, held, "the ticket system", "noor")
    for legs in ((), ("keyword",)):
        with pytest.raises(CanaryError, match="the legs disagree"):
            canary.record(db, half, "the index", "noor", legs)
    assert queries.expected_counts(db, "health", "prod") == {"keyword": held, "vector": held}


def test_record_keeps_author_source_and_leg(settings, db, held):
    """What was recorded stands with who said so and by which source; a leg can be recorded alone."""
    Canary(settings, "health", "prod").record(db, held - 1, "crm", "noor", ("vector",))
    (told,) = queries.expectations(db, "health", "prod")
    assert (told.leg, told.expected, told.source, told.author) == ("vector", held - 1, "crm", "noor")


def test_legs_that_differ_by_design(settings, folder, db, held):
    """Legs that hold different numbers are recorded one by one, and may grow; one that lost some may not."""
    lose_half_of_the_keywords(folder)  # here the design, as of an index of titles beside one of texts
    half, canary = counts(folder)["keyword"], Canary(settings, "health", "prod")
    canary.record(db, half, "crm", "noor", ("keyword",))
    canary.record(db, held, "crm", "noor", ("vector",))
    canary.record(db, held - 1, "crm", "noor", ("vector",))
    assert queries.expected_counts(db, "health", "prod") == {"keyword": half, "vector": held - 1}
    lose_half_of_the_keywords(folder)
    with pytest.raises(CanaryError, match="the legs disagree"):
        canary.record(db, counts(folder)["keyword"], "crm", "noor", ("keyword",))


def test_memories_that_cannot_come_back_do_not_count(settings, folder, db, held):
    """An index whose memories are gone holds nothing, however full it is itself."""
    canary = Canary(settings, "health", "prod")
    canary.record(db, held, "crm", "noor")
    with sqlite3.connect(folder / "index" / "keyword.sqlite") as connection:
        connection.execute("DELETE FROM memory WHERE seq % 2")
    connection.close()
    states = {finding.case: finding.state for finding in canary.check(db)}
    assert (states["count/keyword"], states["legs-agree"]) == ("bad", "bad")


def test_a_canary_that_would_check_nothing_is_not_green(settings, folder, db, held):
    """A leg that the backend has not, and an index whose folder is gone, are told; nothing is made."""
    canary = Canary(settings, "health", "prod")
    canary.record(db, held, "crm", "noor")
    (folder / "health.toml").write_text((folder / "health.toml").read_text().replace('"vector"', '"vektor"'))
    with pytest.raises(CanaryError, match="vektor, which prod does not count; it counts: keyword, vector"):
        Canary(configured(folder / "memtrend.toml"), "health", "prod").record(db, held, "crm", "noor")
    shutil.rmtree(folder / "index")
    with pytest.raises(CanaryError, match="is not there, so nor is the index"):
        canary.check(db)
    assert not (folder / "index").exists()


def test_a_secret_of_the_source_is_not_kept(settings, db, held):
    """A password in the command that asks the source of truth does not reach the record."""
    command = f"PGPASSWORD=hunter2 echo {held} --password=s3cr3tPw"
    Canary(settings, "health", "prod").record(db, held, command, "noor")
    kept = {row.source for row in queries.expectations(db, "health", "prod")}
    assert kept == {f"PGPASSWORD=*** echo {held} --password=***"}


def test_refusals(settings, folder, db, held):
    """A leg that does not exist, a backend that cannot count and a suite of no standing index are named."""
    with pytest.raises(CanaryError, match="no leg graph; known: keyword, vector"):
        Canary(settings, "health", "prod").record(db, held, "crm", "noor", ("graph",))
    with pytest.raises(CanaryError, match="does not declare count and durable"):
        Canary(settings, "health", "bare").record(db, held, "crm", "noor")
    with pytest.raises(SuiteError, match="golden reads no standing index"):
        Canary(settings, "golden", "prod")


@pytest.mark.parametrize(
    ("command", "message"),
    [("exit 3", "exit code 3"), ("echo many", "not 'many'"), ("true", "not ''"), ("echo -5", "not '-5'")],
)
def test_a_source_that_tells_nothing(command, message):
    """A source of truth that fails, or prints no number, records nothing."""
    with pytest.raises(NoAnswer, match=message):
        asked_of_source(command)


def test_source():
    """The number is on the last line that holds anything."""
    assert asked_of_source("echo counting; echo 1200; echo") == 1200


def test_reading_changes_nothing(settings, folder, db, held):
    """A run of a standing index, and a check, write nothing into it: neither what adapter checks write, nor
    what a lost case might be diagnosed by."""
    canary = Canary(settings, "health", "prod")
    canary.record(db, held, "crm", "noor")
    lose_half_of_the_keywords(folder)
    with sqlite3.connect(folder / "index" / "keyword.sqlite") as connection:
        before = list(connection.iterdump())
        ran(settings, db)
        assert "bad" in {finding.state for finding in canary.check(db)}
        assert list(connection.iterdump()) == before
    connection.close()


def test_commands(folder, held, ask):
    """`canary record` and `check` print one document with --json; check exits 3 before anything is recorded,
    0 when all is there, 1 with what is missing; recording half an index exits 1."""
    where = ("--backend", "prod")
    assert ask(folder, "canary", "check", *where).returncode == 3
    done = ask(folder, "canary", "record", "--source", f"echo {held}", *where, "--json")
    assert json.loads(done.stdout) == {
        "suite": "health", "backend": "prod", "expected": held, "counted": {"keyword": held, "vector": held},
    }  # fmt: skip
    fine = ask(folder, "canary", "check", *where, "--json")
    assert (fine.returncode, json.loads(fine.stdout)["ok"]) == (0, True)
    lose_half_of_the_keywords(folder)
    bad = ask(folder, "canary", "check", *where, "--json")
    states = {case["case"]: case["state"] for case in json.loads(bad.stdout)["cases"]}
    assert (bad.returncode, states["count/keyword"], states["count/vector"]) == (1, "bad", "ok")
    told = f"bad     count/keyword: leg incomplete: keyword holds {counts(folder)['keyword']} of {held}"
    assert told in ask(folder, "canary", "check", *where).stdout
    refused = ask(folder, "canary", "record", "--expected", str(held), *where)
    assert refused.returncode == 1
    assert "the legs disagree" in refused.stderr


def test_usage(folder, ask):
    """Neither or both ways to say how many, and a backend left to guess, are usage errors."""
    for arguments in ([], ["--expected", "3", "--source", "echo 3"]):
        assert ask(folder, "canary", "record", "--backend", "prod", *arguments).returncode == 2
    guess = ask(folder, "canary", "check")
    assert guess.returncode == 2
    assert "name the backend with --backend; known: prod, bare" in guess.stderr
