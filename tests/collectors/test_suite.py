"""The words of a suite, and loading one."""

from __future__ import annotations

import hashlib
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from collectors import suite as words
from collectors.suite import (
    DEFAULT_USER,
    READERS,
    SHIPPED,
    Amend,
    Expectation,
    Forget,
    ForgetUser,
    Memory,
    Plant,
    Probe,
    Reopen,
    Scenario,
    Scope,
    Session,
    Step,
    Suite,
    SuiteConfig,
    SuiteError,
    digest,
    load,
)

MEMORY = Memory("m", "text", at=datetime(2026, 1, 2, tzinfo=UTC), metadata={"a": 1})


def _probe(case: str = "a", hash: str = "h") -> Probe:
    return Probe(case, "q", (Expectation("any", ("x",)),), hash=hash)


def _suite(*probes: Probe, kind: str = "golden") -> Suite:
    return Suite("s", kind, (Scenario("one", probes),))


def test_every_step_survives_a_pickle():
    """A scenario goes to another process and comes back the same, whatever its steps."""
    probe = Probe("a", "q", (Expectation("any", ("x",)),), story=(Plant((MEMORY,)),))
    steps: tuple[Step, ...] = (
        Plant((MEMORY,)), Amend("m", "t"), Forget(("m",)), ForgetUser("u"), Session("s"), Reopen(), probe,
    )  # fmt: skip
    assert {type(step) for step in steps} == set(get_args(Step))
    scenario = Scenario("one", steps)
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_the_words_cannot_be_changed():
    """What a reader made stays as it was made."""
    with pytest.raises(AttributeError):
        MEMORY.text = "other"  # type: ignore[misc]


def test_a_scenario_counts_what_it_plants_and_asks():
    """Probes in order, memories over all plants, and whether it reopens."""
    a, b = _probe("a"), _probe("b")
    scenario = Scenario("one", (Plant((MEMORY, MEMORY)), a, Plant((MEMORY,)), b))
    assert (scenario.probes, scenario.plants, scenario.reopens) == ((a, b), 3, False)
    assert Scenario("two", (Reopen(), a)).reopens


def test_a_suite_counts_over_its_scenarios():
    """Probes and plants of a suite are those of all its scenarios, in order."""
    first = Scenario("one", (Plant((MEMORY,)), _probe("a")))
    suite = Suite("s", "golden", (first, Scenario("two", (Plant((MEMORY, MEMORY)), _probe("b")))))
    assert ([probe.case for probe in suite.probes], suite.plants) == (["a", "b"], 3)


def test_every_memory_and_question_has_a_user():
    """Who says nothing of a user means the default one, for memories, questions and scopes alike."""
    assert MEMORY.user == _probe().user == Scope("n").user == DEFAULT_USER


def test_a_question_asks_for_five_and_nothing_special():
    """What a reader leaves unsaid: five hits, of everything the user has, by every index, not critical."""
    probe = _probe()
    assert (probe.k, probe.domains, probe.session, probe.all_sessions) == (5, (), None, False)
    assert (probe.leg, probe.abstain, probe.critical, probe.tags) == (None, False, False, ())


@pytest.mark.parametrize(
    ("expectations", "needs"),
    [
        ((Expectation("any", ("x",)),), set()),
        ((Expectation("at_most", n=3),), set()),
        ((Expectation("only"),), set()),
        ((Expectation("any", ("x",)), Expectation("unwanted", ids=("m",))), {"ids"}),
    ],
)
def test_a_question_by_ids_needs_ids(expectations: tuple[Expectation, ...], needs: set[str]):
    """Only what names ids can be judged of no backend that loses them."""
    assert Probe("a", "q", expectations).needs == needs


# Hashes


def test_a_version_tells_questions_apart_and_nothing_else():
    """It changes with a case's hash, a case and the kind; not with the order, the grouping or the name."""
    a, b = _probe("a", "1"), _probe("b", "2")
    version = _suite(a, b).version
    assert _suite(b, a).version == version
    assert Suite("other", "golden", (Scenario("x", (a,)), Scenario("y", (b,)))).version == version
    others = [
        _suite(a),
        _suite(a, _probe("b", "3")),
        _suite(a, _probe("c", "2")),
        _suite(a, b, kind="locomo"),
    ]
    assert len({version, *(other.version for other in others)}) == 5


def test_a_digest_is_of_the_value_not_of_its_writing():
    """Order of keys and the process are no matter; it is the same on every machine, for ever."""
    assert digest({"a": [1, "ü"], "b": None}) == digest({"b": None, "a": (1, "ü")})
    assert digest("x") == hashlib.sha256(b'"x"').hexdigest()[:16]
    assert len({digest(value) for value in ("1", 1, [1], None, "", {})}) == 6


# Loading


def test_an_unknown_kind_names_those_known():
    """A suite of a kind that no reader reads is refused with the kinds there are."""
    with pytest.raises(SuiteError, match="suite s: unknown kind 'golem'; known: golden"):
        load(SuiteConfig("s", Path("s.jsonl"), kind="golem"))


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Scenario, ...]]:
    """A kind whose scenarios are those put in here under `scenarios`."""
    found: dict[str, tuple[Scenario, ...]] = {"scenarios": ()}
    monkeypatch.setattr(words, "_made_up", lambda config: found["scenarios"], raising=False)
    monkeypatch.setitem(READERS, "made-up", "collectors.suite:_made_up")
    return found


def test_a_suite_is_what_its_reader_reads(reader: dict[str, tuple[Scenario, ...]]):
    """A new kind is one row in READERS; the suite bears the configuration's name, origin and path."""
    reader["scenarios"] = (Scenario("one", (_probe(),)),)
    suite = load(SuiteConfig("s", Path("s.txt"), kind="made-up", origin="published"))
    assert suite == Suite("s", "made-up", reader["scenarios"], "published", "s.txt")


@pytest.mark.parametrize(
    ("scenarios", "said"),
    [
        ((), "suite s: no cases in s.txt; check the path and the selected tags"),
        ((Scenario("one", (Plant((MEMORY,)),)),), "suite s: no cases in s.txt"),
        ((Scenario("one", (_probe(), _probe())),), "suite s: case id 'a' occurs twice; ids must be unique"),
        ((Scenario("one", (_probe(),)), Scenario("two", (_probe(),))), "case id 'a' occurs twice"),
        ((Scenario("one", (_probe(),)), Scenario("one", (_probe("b"),))), "scenario id 'one' occurs twice"),
    ],
)
def test_what_could_not_be_told_apart_is_refused(
    reader: dict[str, tuple[Scenario, ...]], scenarios: tuple[Scenario, ...], said: str
):
    """No cases, a case twice and a scenario twice stop the load, whatever the reader."""
    reader["scenarios"] = scenarios
    with pytest.raises(SuiteError) as refused:
        load(SuiteConfig("s", Path("s.txt"), kind="made-up"))
    assert said in str(refused.value)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_suite_loads_and_loads_the_same(name: str):
    """What is shipped can be read, under its own name, as a starter, with the same version every time."""
    suite = load(SHIPPED[name])
    assert (suite.name, suite.origin) == (name, "starter")
    assert load(SHIPPED[name]).version == suite.version
