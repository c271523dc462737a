"""What a day may cost holds for every run: none begins that would exceed it, and none runs away."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from collectors.budget import NeverWithinBudget, OverBudget, spent_today
from collectors.plans import RunLimits, look_at
from collectors.runner import run
from store import queries
from tests.collectors.playground import cases, memtrend, opened, plan, suite, with_odd

pytestmark = pytest.mark.usefixtures("no_pauses")

RUN = 4 * 0.011
"""USD that four cases cost: a question and a plant each."""


@pytest.fixture
def paid(tmp_path):
    """A plan of four cases, for any limit of the day."""
    of = plan(suite(tmp_path, cases(4)), "Paid")

    def limited(money, **changes):
        return replace(of, limits=RunLimits(5, concurrency=1, money_per_day=money), **changes)

    return limited


def test_what_was_spent_is_of_the_day(db, paid):
    """The sum of a day is of what was answered on it, in UTC, and the next day begins with nothing."""
    run(paid(None), db)
    assert spent_today(db) == pytest.approx(RUN)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1)):
        assert spent_today(db) == 0


def test_a_run_that_would_exceed_it_waits(db, paid):
    """A run that by the last one would go over the limit does not begin: an event has the sum, no run is
    made, and on the next day it may begin."""
    run(paid(None), db)
    with pytest.raises(OverBudget, match=r"0\.04 USD are spent and it will cost about 0\.04"):
        run(paid(1.9 * RUN), db)
    assert queries.count_runs(db) == 1
    (event,) = queries.events(db, levels=["warning"])
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
    assert event.source == "budget"
    assert event.message.startswith(f"small on mine may not begin before {tomorrow} 00:00 UTC: ")
    assert "more than limits.money_per_day = 0.08" in event.message
    assert not any(lease.held for lease in queries.leases(db))
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1)):
        assert run(paid(1.9 * RUN), db).status == "whole"


def test_a_run_within_it_begins(db, paid):
    """What stays within the limit is run, and nothing is noted."""
    run(paid(2.1 * RUN), db)
    assert run(paid(2.1 * RUN), db).status == "whole"
    assert queries.events(db) == []


@pytest.mark.parametrize("changes", [{"trials": 3}, {"subset": queries.CALIBRATION}])
def test_it_counts_what_is_asked(db, paid, changes):
    """Trials are counted, and a calibration as any other run."""
    run(paid(None), db)
    with pytest.raises(OverBudget):
        run(paid(3.9 * RUN if "trials" in changes else 1.9 * RUN, **changes), db)


def test_it_holds_for_a_look(db, paid):
    """A look at a run is not taken over the limit either."""
    first = run(paid(None), db)
    look = look_at(paid(None), first.run_id)
    limits = RunLimits(5, money_per_day=(look.trials + 0.9) * RUN)
    with pytest.raises(OverBudget):
        run(replace(look, limits=limits), db)


def test_what_no_day_allows_is_no_waiting(db, paid):
    """A run that alone costs more than a day may is refused for good, and says which limit to raise."""
    run(paid(None), db)
    with pytest.raises(NeverWithinBudget, match=r"about 0\.04 USD, more than limits\.money_per_day = 0\.02"):
        run(paid(0.5 * RUN), db)


def test_what_costs_nothing_is_not_held_up(db, tmp_path, paid):
    """A backend that is known to cost nothing runs, to its end, on a day whose money is spent."""
    free = plan(suite(tmp_path, cases(4)), "everything", name="free")
    run(free, db)
    run(paid(None), db)
    limits = RunLimits(5, concurrency=1, money_per_day=0.5 * RUN)
    assert run(replace(free, limits=limits), db).status == "whole"


def test_a_run_is_gone_on_with_for_what_is_missing(db, paid):
    """Of a run that was cut short only the rest has to fit into the day."""
    cut = run(paid(0.02), db)
    run(paid(None), db)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1)):
        assert run(paid(0.9 * RUN), db, resume=cut.run_id).status == "whole"


def test_a_run_of_unknown_cost_stops(db, paid):
    """A run that nobody knows the cost of stops once the day is a tenth over, with a reason, and goes on on
    another day."""
    limited = paid(0.02)
    outcome = run(limited, db)
    assert (outcome.status, outcome.waits) == ("interrupted", True)
    assert "over limits.money_per_day = 0.02 by more than 10%" in outcome.reason
    assert queries.run(db, outcome.run_id).cases_done < 4
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1)):
        assert run(limited, db, resume=outcome.run_id).status == "whole"


def test_the_command_line_says_so(tmp_path, folder):
    """`memtrend run` over the limit ends with 3, the sum and the way out, and has made no run."""
    config = with_odd("paid", "Paid") + "[limits]\nmoney_per_day = 0.06\n"
    (folder / "memtrend.toml").write_text(config)
    first = memtrend(folder, "run", "--suite", "small", "--backend", "paid")
    assert first.returncode == 0, first.stderr
    again = memtrend(folder, "run", "--suite", "small", "--backend", "paid")
    assert (again.returncode, "limits.money_per_day = 0.06" in again.stderr) == (3, True)
    assert "may not begin before " in again.stderr
    (folder / "memtrend.toml").write_text(config.replace("0.06", "0.01"))
    never = memtrend(folder, "run", "--suite", "small", "--backend", "paid")
    assert (never.returncode, "raise the limit" in never.stderr) == (2, True)
    db = opened(folder)
    assert queries.count_runs(db) == 1
    db.close()
