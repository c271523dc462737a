"""The shipped questions notice a broken memory, and say what is broken."""

from __future__ import annotations

import pytest

from collectors.backend import BackendConfig
from collectors.backends.faulty import FAULTS
from collectors.mutants import Part, Proof, play_all, play_mutants, with_fault
from collectors.suite import SHIPPED, Suite, load
from collectors.symptoms import symptoms
from store import queries, writes
from store.records import MutantRecord, SuiteRecord

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


def test_what_was_found_is_kept(database_of_suites, suites: dict[str, Suite]):
    """The findings stand with the version of the suite in force, each proof in place of the one before."""
    db, version = database_of_suites
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


@pytest.fixture
def database_of_suites(db):
    return db, writes.register_suite(db, SuiteRecord("mine", "golden", "own", "v1", 0, ()))
