"""The shipped questions notice a broken memory, and say what is broken."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from collectors import mutants
from collectors.backend import BackendConfig
from collectors.backends.faulty import FAULTS
from collectors.mutants import Part, Proof, play_all, play_mutants, with_fault
from collectors.scenario import play
from collectors.suite import SHIPPED, Suite, load
from collectors.symptoms import symptoms
from store import queries, writes
from store.database import open_database
from store.records import MutantRecord, SuiteRecord
from tests.collectors.playground import cases, memtrend, project

HYBRID = BackendConfig("hybrid", "hybrid")


@pytest.fixture(scope="module")
def suites() -> dict[str, Suite]:
    return {name: load(SHIPPED[name]) for name in ("smoke", "contract")}


@pytest.fixture(scope="module")
def proofs(suites: dict[str, Suite]) -> dict[str, Proof]:
    """Every mutant, played on the two small suites at once."""
    played = play_mutants(list(suites.values()), HYBRID)
    return {"both": played.proof(suites), **{name: played.proof([name]) for name in suites}}


def test_smoke_detects_two_thirds(proofs: dict[str, Proof]):
    """Twenty cases, asked after every deploy, notice at least two of three faults."""
    assert 3 * proofs["smoke"].detected >= 2 * len(FAULTS), missed(proofs["smoke"])


def test_with_the_contract_nine_in_ten_are_named(proofs: dict[str, Proof]):
    """Nearly every fault is noticed by these two alone, and what is noticed is called by its right name."""
    both = proofs["both"]
    assert 10 * both.detected >= 9 * len(FAULTS), missed(both)
    assert 10 * both.named_right >= 9 * both.detected, [m for m in both.mutants if not m.named_right]


def missed(proof: Proof) -> list[str]:
    return [mutant.fault for mutant in proof.mutants if not mutant.found.detected]


def test_a_healthy_backend_is_found_healthy(proofs: dict[str, Proof]):
    """Held against itself, the backend without a fault shows nothing at all."""
    healthy = proofs["both"].healthy
    assert not healthy.detected, healthy
    assert healthy.lost == ()


def test_each_suite_is_proved_alone(proofs: dict[str, Proof], suites: dict[str, Suite]):
    """A suite alone notices no more than it does with another, and counts its own cases."""
    for name, suite in suites.items():
        alone = {m.fault for m in proofs[name].mutants if m.found.lost}
        assert alone <= {m.fault for m in proofs["both"].mutants if m.found.lost}
        assert proofs[name].cases == sum(1 for _ in suite.probes)


@pytest.mark.parametrize("of", ["keyword", "dense"])
@pytest.mark.parametrize("fault", ["ignores-user", "forget-no-op", "lost-on-reopen"])
def test_other_backends_may_be_broken_too(fault: str, of: str, suites: dict[str, Suite]):
    """A fault is noticed, and named, whatever it is put into."""
    parts = [Part("contract", scenario) for scenario in suites["contract"].scenarios]
    backend = BackendConfig(of, of)
    found = symptoms(play_all(parts, backend), play_all(parts, with_fault(backend, fault)))
    assert (found.detected, found.kind) == (True, FAULTS[fault].kind)


def test_what_was_found_is_kept(db):
    """The findings stand with the version of the suite in force, each proof in place of the one before."""
    version = writes.register_suite(db, SuiteRecord("mine", "golden", "own", "v1", 0, ()))
    caught = MutantRecord("slow", "takes 20 ms more a call", True, 0, 0, "too slow", True)
    missed = MutantRecord("stale-first", "ranks an older fact first", False, 1, 0, "unwanted returned", False)
    writes.record_mutants(db, version, "hybrid", [missed])
    writes.record_mutants(db, version, "hybrid", [caught, missed])
    rows = queries.mutants(db, "mine")
    assert [(row.fault, row.detected, row.lost, row.kind, row.kind_right) for row in rows] == [
        ("slow", True, 0, "too slow", True),
        ("stale-first", False, 1, "unwanted returned", False),
    ]
    writes.register_suite(db, SuiteRecord("mine", "golden", "own", "v2", 0, ()))
    assert queries.mutants(db, "mine") == []


def test_the_command_tells_and_keeps(tmp_path: Path):
    """`memtrend mutants` prints one document with every fault, and the record holds what it found."""
    project(tmp_path, '[suites.small]\npath = "small.jsonl"\n', cases(3))
    done = memtrend(tmp_path, "mutants", "--suite", "small", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["cases"] == 3
    assert [row["fault"] for row in told["mutants"]] == list(FAULTS)
    row = told["mutants"][list(FAULTS).index("returns-nothing")]
    assert {name: row[name] for name in ("detected", "lost", "critical_lost", "kind", "kind_right")} == {
        "detected": True,
        "lost": 3,
        "critical_lost": 0,
        "kind": "stored but not returned",
        "kind_right": True,
    }
    db = open_database(f"sqlite:///{tmp_path}/memtrend.db")
    kept = {row.fault: row.lost for row in queries.mutants(db, "small")}
    db.close()
    assert kept == {row["fault"]: row["lost"] for row in told["mutants"]}


def test_a_broken_backend_proves_nothing(tmp_path: Path):
    """A backend that cannot be asked, or passes nothing, is refused with the reason: no suite is blamed, and
    nothing is kept."""
    config = '[suites.small]\npath = "small.jsonl"\n[backends.gone]\ntype = "no_such_module:Memory"\n'
    project(tmp_path, config + '[backends.nothing]\ntype = "nothing"\n', cases(2))
    for backend, told in (("gone", "2 of 2 cases end in an error"), ("nothing", "passes none of 2 cases")):
        done = memtrend(tmp_path, "mutants", "--suite", "small", "--backend", backend, "--json")
        assert (done.returncode, done.stdout) == (3, "")
        assert told in done.stderr
    with closing(open_database(f"sqlite:///{tmp_path}/memtrend.db")) as db:
        assert queries.mutants(db, "small") == []


def test_mutants_of_one_server_keep_apart(monkeypatch: pytest.MonkeyPatch):
    """Two mutants of a store that outlives them never meet: each plays in namespaces of its own."""
    used: list[str] = []

    def spied(instance, scenario, namespace, limits):
        used.append(namespace)
        return play(instance, scenario, namespace, limits)

    monkeypatch.setattr(mutants, "play", spied)
    parts = [Part("contract", scenario) for scenario in load(SHIPPED["contract"]).scenarios[:3]]
    for config in (HYBRID, with_fault(HYBRID, "slow"), HYBRID):
        play_all(parts, config)
    assert len(set(used)) == len(used) == 9


def test_the_command_refuses_what_it_does_not_know(tmp_path: Path):
    """An unknown suite or backend is refused by name before anything is played."""
    project(tmp_path, '[suites.small]\npath = "small.jsonl"\n', cases(1))
    for arguments in (("--suite", "nightly"), ("--backend", "cloud")):
        done = memtrend(tmp_path, "mutants", *arguments)
        assert done.returncode == 2
        assert f"{arguments[1]!r}; known:" in done.stderr
