"""A collector that is stopped: what it had is kept, what waited is left to the next."""

import json
import signal
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from collectors.collector import _level
from collectors.configured import configured
from collectors.pairs import Done, Pair
from collectors.plans import RunOutcome
from collectors.process import Stop
from collectors.runs import interrupted as interrupted_runs
from collectors.runs import run_all
from store import models as m
from store import queries
from tests.collectors.collecting import Process, Running, answered, ask, ended, until, write_suite

WEEKLY = """[schedules.weekly]
cron = "0 4 * * sun"
suites = ["mine"]
"""


def test_a_fire_that_a_stop_cuts_short_is_gone_on_with(slow_home, db, monkeypatch):
    """What a stop interrupts is an invalid fire until the next collector finishes the same run, with nothing
    asked twice; what had not begun is left to it as well."""
    monkeypatch.syspath_prepend(slow_home)
    file = slow_home / "memtrend.toml"
    file.write_text(file.read_text().replace("[limits]", WEEKLY + "[limits]"))
    with Running(db) as running:
        running.fire("nightly")
        until(lambda: [row for row in queries.progress(db) if row.cases_done], "a case is done")
        second = running.fire("weekly")
        until(lambda: not queries.due_fires(db, datetime.now(UTC)), "the second is taken")
    (fire,) = ended(db, "nightly")
    (run,) = queries.runs(db)
    assert (fire.state, fire.run_ids, run.status) == ("invalid", (run.id,), "interrupted")
    assert [row[:2] for row in queries.due_fires(db, datetime.now(UTC))][1:] == [("weekly", second)]
    kept = results(db, run.id)
    assert 0 < len(kept) < 80
    monkeypatch.setenv("SLOW_S", "0")
    with Running(db):
        until(lambda: [fire.state for fire in ended(db, "weekly")] == ["done"], "both are done")
    (fire,) = ended(db, "nightly")
    assert (fire.state, fire.run_ids, queries.run(db, run.id).status) == ("done", (run.id,), "whole")
    assert len(results(db, run.id)) == 80
    assert set(kept) <= set(results(db, run.id))
    assert queries.count_runs(db) == 2


def test_what_has_changed_meanwhile_is_run_anew(slow_home, db, monkeypatch):
    """A fire whose suite was changed after a stop makes another run: half of each would be none."""
    monkeypatch.syspath_prepend(slow_home)
    with Running(db) as running:
        running.fire("nightly")
        until(lambda: [row for row in queries.progress(db) if row.cases_done], "a case is done")
    (cut,) = queries.runs(db)
    write_suite(slow_home, 2)
    with Running(db):
        until(lambda: [fire.state for fire in ended(db, "nightly")] == ["done"], "it is done")
    whole, same = queries.runs(db)
    assert (whole.status, whole.cases_done) == ("whole", 4)
    assert (same.id, same.status, same.cases_done) == (cut.id, "interrupted", cut.cases_done)


def test_a_first_run_that_a_stop_cuts_short_is_gone_on_with(slow_home, db, monkeypatch):
    """The next start finishes it, and makes no other."""
    monkeypatch.syspath_prepend(slow_home)
    with Running(db, first_runs=True):
        until(lambda: [row for row in queries.progress(db) if row.cases_done], "a case is done")
    (cut,) = queries.runs(db)
    monkeypatch.setenv("SLOW_S", "0")
    with Running(db, first_runs=True):
        until(lambda: queries.run(db, cut.id).status == "whole", "the same run is whole")
    assert queries.count_runs(db, suites=["mine"]) == 1


def test_requests_outlive_a_stop(slow_home, db, monkeypatch):
    """The next collector goes on with the run that was under way, and makes the one that never began."""
    monkeypatch.syspath_prepend(slow_home)
    with Running(db):
        first = ask(db, suite="mine", backend="slow")
        waiting = ask(db, suite="mine", backend="slow")
        until(lambda: len(queries.requests(db, ["claimed"])) == 2, "both are claimed")
        (cut,) = until(lambda: queries.progress(db), "the first is under way")
    queued = {row.id: (row.run_ids, row.error) for row in queries.requests(db, ["queued"])}
    assert queued == {first: ([cut.id], None), waiting: ([], None)}
    monkeypatch.setenv("SLOW_S", "0")
    with Running(db):
        assert answered(db, first).run_ids == [cut.id]
        assert answered(db, waiting).state == "done"
    assert [row.status for row in queries.runs(db)] == ["whole", "whole"]


def test_term_checkpoints_and_resume_finishes(slow_home, db, monkeypatch):
    """A run that TERM interrupts keeps what it had, and resuming it loses and doubles nothing."""
    process = Process(slow_home, "collect")
    with process as collector:
        request = ask(db, suite="mine", backend="slow")
        row = until(lambda: [r for r in queries.progress(db) if r.cases_done >= 3], "three cases are done")[0]
        collector.send_signal(signal.SIGTERM)
        assert collector.wait(timeout=10) == 0
    said = [json.loads(line) for line in process.said.read_text().splitlines()]
    assert [entry["status"] for entry in said if "status" in entry] == ["interrupted"]
    kept = results(db, row.id)
    interrupted = queries.run(db, row.id)
    assert interrupted.status == "interrupted"
    assert 3 <= len(kept) < 40
    (queued,) = queries.requests(db, ["queued"])
    assert (queued.id, queued.run_ids) == (request, [row.id])

    monkeypatch.setenv("SLOW_S", "0")
    (resumed,) = run_all(db, interrupted_runs(db, configured(), [row.id]), Stop())
    assert resumed.problem is None
    after = results(db, row.id)
    assert queries.run(db, row.id).status == "whole"
    assert sorted(name for name, _ in after) == sorted(f"door-{number}" for number in range(40))
    assert set(kept) <= set(after)


@pytest.mark.parametrize(
    ("status", "reason", "level"),
    [
        ("interrupted", "stopped", "info"),
        ("interrupted", "cancelled", "info"),
        ("interrupted", "the lease was lost", "warning"),
        ("invalid", "5 of 5 answers were errors", "error"),
    ],
)
def test_a_stop_is_no_problem(status, reason, level):
    """A run that a person stopped is told among the events, and is none of the problems that pages count."""
    assert _level(Done(Pair("mine", "slow"), RunOutcome(1, status, reason), reason)) == level


def test_a_backend_that_hangs_does_not_hold_the_collector(slow_home, db):
    """A call that does not come back is left behind: the collector is gone within 10 s, its run resumable."""
    with Process(slow_home, "collect", SLOW_S="600") as collector:
        ask(db, suite="mine", backend="slow")
        row = until(lambda: queries.progress(db), "the run is under way")[0]
        collector.send_signal(signal.SIGTERM)
        assert collector.wait(timeout=10) == 0
    assert queries.run(db, row.id).status == "interrupted"


def results(db, run_id):
    """(case, id of its result) of everything stored for a run."""
    query = sa.select(m.case.c.name, m.case_result.c.id).join(m.case, m.case.c.id == m.case_result.c.case_id)
    with db.read() as connection:
        return [tuple(row) for row in connection.execute(query.where(m.case_result.c.run_id == run_id))]
