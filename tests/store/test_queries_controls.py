"""What ran beside what: nights of a backend and its control, as a verdict reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from store import models as m
from store import queries, writes
from store.control import read
from store.database import Database
from store.errors import StoreError
from store.evidence import entry
from store.queries.controls import ControlNight, ControlRecord, Said
from store.queries.said import newest_worse
from store.records import CaseOutcome, ClosedStatus, NewControl, NewRun
from store.verdicts import judge
from tests.store.seeding import START, Seed, outcome, scenario

ALL = ("a", "b", "c", "d")
OLD = "thing==1.0"


class Pairs:
    """Nights of `keyword` and of its control."""

    def __init__(self, seed: Seed) -> None:
        self.seed, self.db, self.suite, self.day = seed, seed.db, seed.suite(), 0

    def night(
        self,
        ours: Sequence[CaseOutcome],
        theirs: Sequence[CaseOutcome],
        release: str = OLD,
        environment: dict[str, Any] | None = None,
        ended: tuple[ClosedStatus, ClosedStatus] = ("whole", "whole"),
    ) -> tuple[int, int]:
        """The ids of both runs; `ended`: the status of each."""
        names = ("keyword", "keyword-control")
        tokens = [writes.acquire_lease(self.db, writes.backend_lease(name), "test", 60) for name in names]
        assert tokens[0] is not None
        assert tokens[1] is not None
        ran_on = writes.register_environment(self.db, environment) if environment else None
        new = NewRun(self.suite, self.seed.backend(), ran_on, "cli", tokens[0], 4, 1, "1")
        control = NewControl(names[1], "keyword", {"package": release}, release, None, tokens[1])
        ids = writes.open_pair(self.db, new, control)
        for run_id, token, outcomes in zip(ids, tokens, (ours, theirs), strict=True):
            writes.save_scenario(self.db, run_id, scenario(outcomes), token)
        for run_id, token, name, status in zip(ids, tokens, names, ended, strict=True):
            self.seed.close(run_id, token, name, status, START + timedelta(days=self.day))
        self.day += 1
        return ids

    def record(self, run_id: int) -> ControlRecord:
        found = queries.verdict_record(self.db, run_id)
        assert found is not None
        assert found.control is not None
        return found.control


@pytest.fixture
def pairs(seed: Seed) -> Pairs:
    return Pairs(seed)


def answers(passed: str, erred: str = "") -> list[CaseOutcome]:
    return [
        outcome(name, passed=None, status="error") if name in erred else outcome(name, passed=name in passed)
        for name in ALL
    ]


def test_pairs_are_counted(pairs: Pairs) -> None:
    """Lost is what the control alone passes, gained what the backend alone does; a case with an error on
    either side is in neither, and is counted."""
    ours, theirs = pairs.night(answers("a", erred="d"), answers("bcd"))
    assert pairs.record(ours) == (theirs, OLD, None, (ControlNight(ours, theirs, 2, 1, 1, None, None),))


def test_nights_are_put_together(pairs: Pairs) -> None:
    """Of a run: all nights up to it with the same release; neither later ones nor those of another release,
    nor those in which either was not whole."""
    pairs.night(answers("abcd"), answers("abcd"), release="thing==0.9")
    first = pairs.night(answers("abc"), answers("abcd"))
    pairs.night(answers("a"), answers("abcd"), ended=("whole", "invalid"))
    pairs.night(answers("a"), answers("abcd"), ended=("invalid", "whole"))
    last = pairs.night(answers("abcd"), answers("ab"))
    pairs.night(answers("abcd"), answers(""))
    told = [(one.run_id, one.lost, one.gained) for one in pairs.record(last[0]).nights]
    assert told == [(first[0], 1, 0), (last[0], 0, 2)]


def on(own: str = "2.0", other: str = "1.0", **config: Any) -> dict[str, Any]:
    """An environment: the backend's own package, and one that is none of its own."""
    return {
        "packages": {"thing": own, "other": other},
        "of_backend": {"thing": {}},
        "config": config,
        "git": own,
    }


@pytest.mark.parametrize(
    ("first", "then", "counted"),
    [
        (on("2.0"), on("2.1"), 1),
        (on("2.0", infer=False), on("2.0", infer=True), 1),
        (on("2.0", other="1.0"), on("2.0", other="1.1"), 3),
    ],
)
def test_another_release_of_the_backend_begins_anew(
    pairs: Pairs, first: dict[str, Any], then: dict[str, Any], counted: int
) -> None:
    """What was counted of the backend's last release, or configuration, says nothing of this one; other
    packages change without that."""
    both = answers("abc"), answers("abcd")
    ids = [pairs.night(*both, environment=one)[0] for one in (first, first, then)]
    assert [one.run_id for one in pairs.record(ids[-1]).nights] == ids[-counted:]
    assert len(pairs.record(ids[1]).nights) == 2
    again, _ = pairs.night(*both, environment=first)
    assert len(pairs.record(again).nights) == (counted if counted == 1 else 4)


@pytest.mark.parametrize(("action", "counted"), [("intended", 1), ("reset", 1), ("pin", 3)])
def test_a_baseline_that_begins_anew_begins_the_count_anew(
    pairs: Pairs, db: Database, action: Any, counted: int
) -> None:
    """Nights count from the first after somebody said so: those that were seen when it was said are none of
    them, and what was judged before is judged as it was."""
    both = answers("abc"), answers("abcd")
    ids = [pairs.night(*both)[0] for _ in range(2)]
    named = ids[1:] if action != "reset" else []
    writes.decide_baseline(db, "golden", "keyword", action, named, "meant", "tester")
    with db.write() as connection:
        at = START + timedelta(days=1, hours=5)
        connection.execute(m.baseline_change.update().values(at=at))
    ids.append(pairs.night(*both)[0])
    assert [one.run_id for one in pairs.record(ids[-1]).nights] == ids[-counted:]
    found = pairs.record(ids[1])
    assert (len(found.nights), found.unread) == (2, None)


def test_a_controls_name_is_taken(pairs: Pairs, seed: Seed, db: Database) -> None:
    """A backend that is given the name of a control later, with or without a control of its own, makes no
    night of that series; a look at the control goes on."""
    pairs.night(answers("abcd"), answers("abcd"))
    said = "backend keyword-control has the name of a control, that of run 1, .* give the backend another"
    with pytest.raises(StoreError, match=said):
        seed.open(pairs.suite, "keyword-control")
    new = NewRun(pairs.suite, seed.backend("keyword-control"), None, "cli", 1, 4, 1, "1")
    with pytest.raises(StoreError, match=said):
        writes.open_pair(db, new, NewControl("keyword-control-control", "keyword", {}, OLD, None, 1))
    assert queries.count_runs(db) == 2
    writes.release_lease(db, "backend:keyword-control", 2)
    assert writes.open_run(db, replace(new, subset=queries.CONFIRM, token=2))


def test_a_case_in_quarantine_is_no_pair(pairs: Pairs, db: Database) -> None:
    """What a person decided to be no news is none against a control either."""
    ours, _ = pairs.night(answers("ab"), answers("abcd"))
    until = queries.clock(db) + timedelta(days=3)
    why = {"reason": "flaky", "author": "tester", "owner": "team"}
    writes.decide_case(db, "golden", "c", "quarantine", expires=until, **why)
    assert [one.lost for one in pairs.record(ours).nights] == [1]


@pytest.mark.parametrize("status", ["invalid", "void", "interrupted"])
def test_a_control_that_cannot_be_read(pairs: Pairs, status: ClosedStatus) -> None:
    """Where the control's run did not end whole the night is no pair, and the record says why."""
    pairs.night(answers("abcd"), answers("abcd"))
    ours, theirs = pairs.night(answers("abcd"), answers("abcd"), ended=("whole", status))
    found = pairs.record(ours)
    assert (found.unread, len(found.nights)) == (f"its run {theirs} is {status}", 1)


def test_a_run_without_a_control(pairs: Pairs, seed: Seed, db: Database) -> None:
    """A run that nothing ran beside has no control, whatever other nights had; nor has a control."""
    _, theirs = pairs.night(answers("abcd"), answers("abcd"))
    alone = seed.run(pairs.suite, ALL, day=5)
    records = [queries.verdict_record(db, run_id) for run_id in (alone, theirs)]
    assert [record and record.control for record in records] == [None, None]
    assert queries.control_beside(db, alone) is None


def test_neither_is_begun_alone(pairs: Pairs, seed: Seed, db: Database) -> None:
    """A control's name that is a backend's own is refused, and then no run has begun."""
    seed.run(pairs.suite, ALL, backend="keyword-control")
    with pytest.raises(StoreError, match="called keyword-control, and a backend of that name has runs"):
        pairs.night(answers("abcd"), answers("abcd"))
    assert queries.count_runs(db) == 1


def test_what_is_said_of_both_is_read(pairs: Pairs, db: Database) -> None:
    """A night knows the verdict in force of either; a control of which nothing can be told says why."""
    ours, theirs = pairs.night(answers("abcd"), answers("abcd"))
    for run_id in (theirs, ours):
        record = queries.verdict_record(db, run_id)
        assert record is not None
        writes.record_verdict(db, entry(run_id, judge(record)))
    why = "the first run of this series"
    (night,) = pairs.record(ours).nights
    assert (night.backend, night.control) == (Said("cannot_tell", "", why),) * 2
    found = read(pairs.record(ours), ours, "worse", "suspected")
    assert (found.cause, found.fell, found.untold) == ("cannot tell", None, why)


def test_controls_are_known_by_their_newest_release(pairs: Pairs, db: Database) -> None:
    """Each control is listed once, with its backend and the release of its newest run."""
    pairs.night(answers("abcd"), answers("abcd"), release="thing==0.9")
    pairs.night(answers("abcd"), answers("abcd"))
    assert queries.controls(db) == [("keyword", "keyword-control", OLD)]


def test_what_is_worse_is_looked_for_among_the_teams_own(pairs: Pairs, db: Database) -> None:
    """Where a series went bad is asked of backends; a control is found when it is named."""
    _, theirs = pairs.night(answers("abcd"), answers("abcd"))
    record = queries.verdict_record(db, theirs)
    assert record is not None
    bad = entry(theirs, judge(record))._replace(verdict="worse")
    writes.record_verdict(db, bad)
    with pytest.raises(queries.NothingToCompare, match="no run was found worse"):
        queries.turn(db)
    with db.read() as connection:
        found = newest_worse(connection, None, "keyword-control")
    assert (found and found.run_id) == theirs
