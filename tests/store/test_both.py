"""Every question and every write is tried on SQLite and on PostgreSQL: those that no other file here tries,
and that none is left out."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from store import queries, writes
from store.database import Database
from store.records import MutantRecord, Rollup, VerdictEntry
from tests.store.seeding import Seed, outcome, scenario

ONE_KIND = {"test_backup.py", "test_upgrade.py"}
"""Files of tests that leave out one of the two, besides those with a `kind` of their own."""
OWN_KIND = re.compile(r"^def kind\(\)", re.MULTILINE)
THROUGH = {"remove": "retention.prune", "nobody": "turn_alerts"}
"""Called by a name of its own nowhere, but by what is named here."""


@pytest.mark.parametrize("module", [queries, writes], ids=["queries", "writes"])
def test_none_is_left_out(module: ModuleType) -> None:
    """Every function of the record is called in a test of both databases."""
    here = Path(__file__).parent
    files = [path.read_text() for path in here.glob("*.py") if path.name not in ONE_KIND]
    tests = "\n".join(text for text in files if not OWN_KIND.search(text))
    names = [name for name in module.__all__ if inspect.isfunction(getattr(module, name))]
    assert len(names) > 40
    missing = [name for name in names if not re.search(rf"\b{re.escape(THROUGH.get(name, name))}\(", tests)]
    assert missing == []


def test_mutants(db: Database, seed: Seed) -> None:
    """What was found of the faults comes back in its order, and a later proof takes its place."""
    version = seed.suite()
    found = MutantRecord("amnesia", "forgets", True, 2**31 - 1, 0, "not stored", True)
    unseen = MutantRecord("echo", "says all twice", False, 0, 0, None, False)
    writes.record_mutants(db, version, "keyword", [unseen])
    writes.record_mutants(db, version, "keyword", [found, unseen])
    rows = queries.mutants(db, "golden")
    assert [row[1:-1] for row in rows] == [
        ("amnesia", "forgets", True, 2**31 - 1, 0, "not stored", True),
        ("echo", "says all twice", False, 0, 0, None, False),
    ]
    writes.record_mutants(db, version, "keyword", [])
    assert queries.mutants(db, "golden") == []


def test_money(db: Database, seed: Seed) -> None:
    """What runs spent on a day is added up, for all and for some; a case costs what it did in the newest
    whole run."""
    version, today = seed.suite(), datetime.now(UTC).date()
    assert queries.spent_on(db, today) == 0
    assert queries.cost_of_a_case(db, "golden", "keyword") is None
    first, second = seed.run(version, ["a"]), seed.run(version, ["a"], day=1)
    assert queries.spent_on(db, today) == pytest.approx(1.0)
    assert queries.spent_on(db, today, [second]) == pytest.approx(0.5)
    assert queries.spent_on(db, today, []) == 0
    assert queries.cost_of_a_case(db, "golden", "keyword") == pytest.approx(0.5 / 4)
    assert first < second


def test_calibrations(db: Database, seed: Seed) -> None:
    """The second run of each pair has its two figures, without the one that could not be told."""
    version = seed.suite()
    for number, figures in enumerate((["noise_floor", "false_verdict"], ["noise_floor"])):
        run_id, token = seed.open(version, subset=queries.CALIBRATION)
        writes.save_scenario(db, run_id, scenario([outcome("a")]), token)
        rolled = [Rollup(name, "", 4, 0.25 + number, None, None) for name in figures]
        writes.close_run(db, run_id, "whole", rolled, token=token)
        writes.release_lease(db, writes.backend_lease("keyword"), token)
    points = queries.calibrations(db, "golden", "keyword")
    assert [point[2:] for point in points] == [(4, 0.25, 0.25), (4, 1.25, None)]


def test_green_runs(db: Database, seed: Seed) -> None:
    """What a gate let pass on a branch, and other runs of the same commit; nothing of another branch."""
    version = seed.suite()
    at = [
        writes.register_environment(db, {"git": {"branch": branch, "revision": revision}})
        for branch, revision in (("main", "r1"), ("main", "r1"), ("main", "r2"), ("side", "r1"))
    ]
    runs = [seed.run(version, ["a"], day=day, environment_id=id) for day, id in enumerate(at)]
    passed = VerdictEntry(runs[0], 1, "unchanged", "final", False, True, {"gate": {"passed": True}})
    writes.record_verdict(db, passed)
    writes.record_verdict(db, passed._replace(run_id=runs[2], content={"gate": {"passed": False}}))
    assert queries.green_runs(db, "golden", "keyword", "main") == runs[:2]
    assert queries.green_runs(db, "golden", "keyword", "none") == []


def test_baselines(db: Database, seed: Seed) -> None:
    """What a run is held against is told of each run, and what was decided in the order of the decisions."""
    version = seed.suite()
    runs = [seed.run(version, ["a"], day=day) for day in range(3)]
    writes.decide_baseline(db, "golden", "keyword", "exclude", [runs[0]], "one", "ann")
    writes.decide_baseline(db, "golden", "keyword", "include", [runs[0]], "two", "ann")
    assert [one.reason for one in queries.baseline_decisions(db, "golden", "keyword")] == ["one", "two"]
    assert queries.baseline_decisions(db, "golden", "nowhere") == []
    found = queries.run_baseline(db, runs[2])
    assert found is not None
    assert {*found.history, *found.anchor} == set(runs[:2])
    assert queries.run_baseline(db, 999) is None


def test_a_baseline_travels(db: Database, seed: Seed) -> None:
    """Nights that came as a file are runs of another series, once, and it has the same passes."""
    version = seed.suite()
    ran_on = writes.register_environment(db, {"python": "3.11"})
    for day in range(3):
        seed.run(version, ["a", "b"], day=day, environment_id=ran_on)
    carried = queries.carried_baseline(db, "golden", "keyword")
    assert carried is not None
    home = (version, seed.backend("other"), writes.register_environment(db, {}), "ann")
    assert writes.import_baseline(db, carried, *home)[:4] == (3, 0, 4, 0)
    assert writes.import_baseline(db, carried, *home)[:4] == (0, 3, 4, 0)
    came = queries.runs(db, backends=["other"])
    assert [row.metrics["pass"].mean for row in came] == [0.5] * 3
    assert [row.passed for row in queries.run_cases(db, came[0].id)] == [True, True, False, False]
    after = seed.run(version, ["a"], backend="other", day=9)  # ids go on behind those that came
    assert len(queries.run_cases(db, after)) == 4


def test_what_changed(db: Database, seed: Seed) -> None:
    """What changed where a series went bad, and what differs from an environment that is in no record."""
    version = seed.suite()
    ran_on = [writes.register_environment(db, {"python": one}) for one in ("3.11", "3.12")]
    good, bad = (
        seed.run(version, passed, day=day, environment_id=ran_on[day])
        for day, passed in enumerate((["a", "b", "c", "d"], []))
    )
    worse = VerdictEntry(bad, 1, "worse", "final", False, False, {"baseline": [good]})
    writes.record_verdict(db, worse._replace(run_id=good, verdict="unchanged", accepted=True))
    writes.record_verdict(db, worse)
    told = queries.changes_to(db, bad)
    assert (told.before.id, told.after.id) == (good, bad)
    assert "3.12" in str(told.changes)
    assert "3.12" in str(queries.changes_since(db, {"python": "3.10"}, bad))


def test_expectations(db: Database, seed: Seed) -> None:
    """The last expectation of each leg, with who said it; and the hashes of a version that is known."""
    seed.suite()
    seed.backend()
    for count in (5, 2**31 - 1):
        writes.expect_counts(db, "golden", "keyword", {"vector": count}, "import", "ann")
    (told,) = queries.expectations(db, "golden", "keyword")
    assert told[:4] == ("vector", 2**31 - 1, "import", "ann")
    assert queries.case_hashes(db, "golden", "a1-b1-c1-d1") == dict.fromkeys("abcd", "1")
    assert queries.case_hashes(db, "golden", "nothing") == {}
    assert queries.looked_at("confirm:7") == 7


def test_what_waits(db: Database) -> None:
    """What a collector put off is told with the reason, and taken again."""
    leader = writes.acquire_lease(db, writes.LEADER_LEASE, "test", 60)
    assert leader is not None
    asked = writes.add_request(db, "run", {"suite": "golden", "backend": "keyword"})
    assert writes.claim_request(db, leader) is not None
    writes.put_back_request(db, asked, [], "no money today", leader)
    assert [row.error for row in queries.waiting_requests(db)] == ["no money today"]
    again = writes.claim_request(db, leader)
    assert again is not None
    assert (again.id, again.error) == (asked, None)
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    writes.write_expected(db, "nightly", iter([due]), due)
    writes.record_schedule(db, "nightly", due, enabled=True)
    assert writes.claim_fire(db, "nightly", due, leader)
    writes.hold_fire(db, "nightly", due, "no money today", leader, begun=False)
    assert [row.reason for row in queries.waiting_fires(db)] == ["no money today"]


def test_worse_runs(db: Database, seed: Seed) -> None:
    """The verdict in force decides, and only the runs of the suite that is asked for are told."""
    version = seed.suite()
    ids = [seed.run(version, ["a"], day=day) for day in range(3)]
    for run_id, said in ((ids[0], "worse"), (ids[1], "worse"), (ids[1], "unchanged"), (ids[2], "worse")):
        writes.record_verdict(db, VerdictEntry(run_id, 1, said, "", False, True, {}))
    assert queries.worse_runs(db, "golden") == {ids[0], ids[2]}
    assert queries.worse_runs(db, "other") == set()


def test_what_is_due_and_what_comes_next(db: Database) -> None:
    """A fire is unfinished from when it is due until it is over; the next one is the earliest ahead."""
    leader = writes.acquire_lease(db, writes.LEADER_LEASE, "test", 60)
    assert leader is not None
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    writes.write_expected(db, "nightly", iter([due, due + timedelta(days=1)]), due + timedelta(days=1))
    writes.record_schedule(db, "nightly", due, enabled=True)
    assert queries.next_due(db, datetime.now(UTC)) == due
    assert queries.unfinished_fires(db, due - timedelta(minutes=1)) == []
    assert queries.unfinished_fires(db, due) == ["expected"]
    assert writes.claim_fire(db, "nightly", due, leader)
    assert queries.unfinished_fires(db, due) == ["claimed"]
    assert queries.next_due(db, due) == due + timedelta(days=1)
