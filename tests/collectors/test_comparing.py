"""Two sides asked in turns: which runs are made, which are taken from the record, and what they end as."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collectors.alerting import after_runs
from collectors.comparing import Held, to_run
from collectors.configured import configured, release_config
from collectors.lease import BackendLease, InstanceBusy
from collectors.plans import RunLimits, compared
from collectors.rounds import arms
from collectors.runner import run
from collectors.runs import NothingToResume, interrupted
from collectors.side_by_side import play_sides, to_go_on
from store import queries
from store.comparisons import taken
from store.settings import Settings, SettingsError
from tests.collectors.playground import LINES, cases, plan, project, results, suite

pytestmark = pytest.mark.usefixtures("no_pauses")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
COMMAND = "memtrend compare a b --suite small --trials 2"


def both(of, *, trials=2, limits=None, a="Shelf", b="Shelf", **options):
    """A plan for each side, of two backends called `a` and `b`."""
    made = [
        replace(
            plan(of, type, name=name, trials=trials, options=options), limits=limits or RunLimits(timeout_s=5)
        )
        for name, type in (("a", a), ("b", b))
    ]
    return [compared(made[0], "b", COMMAND), compared(made[1], "a", COMMAND)]


def play(db, plans, on_progress=lambda progress: None, stop=None):
    stop = stop or threading.Event()
    with arms(plans, db, [stop] * len(plans)) as found:
        for arm in found:
            arm.prepare()
        return play_sides(found, on_progress)


def stop_after(done, stop):
    def look(progress):
        if progress.done >= done:
            stop.set()

    return look


# How they run


def test_takes_turns(db, tmp_path):
    """The sides play each scenario one after the other and take turns in who begins: A B, B A, over all
    trials."""
    notes = str(tmp_path / "journal")
    outcomes = play(db, both(suite(tmp_path, cases(3)), journal=notes))
    asked = [line.split(" ")[2].split("-")[1] for line in Path(notes).read_text().splitlines()
             if " recall " in line and "check" not in line]  # fmt: skip
    a, b = (str(outcome.run_id) for outcome in outcomes)
    assert asked == [a, b, b, a] * 3


def test_no_nights(db, tmp_path):
    """Both are whole runs of subset @compare, with trials as planned; neither is a night, nor judged, nor
    anything that an alert is for."""
    outcomes, told = play(db, both(suite(tmp_path, cases(4)), trials=3, lost="key")), []
    rows = [queries.run(db, outcome.run_id) for outcome in outcomes]
    assert [(row.status, row.subset, row.trigger, row.trials, row.cases_done) for row in rows] == [
        ("whole", "@compare", "compare", 3, 12)
    ] * 2
    assert [row.meta for row in rows] == [{"compared_with": other, "command": COMMAND} for other in "ba"]
    assert queries.overview(db) == []
    assert queries.trend(db, "small", "pass") == []
    assert [queries.verdict(db, row.id) for row in rows] == [None, None]
    after_runs(db, Settings(), told.append)
    assert (told, queries.undetected(db), queries.alerts(db)) == ([], [], [])


def test_interrupted_and_gone_on_with(db, tmp_path):
    """What was stopped is interrupted on both sides; the same comparison plays what is missing, and comes to
    what one comes to that was never stopped."""
    of, stop = suite(tmp_path, cases(5)), threading.Event()
    first = play(db, both(of), stop_after(7, stop), stop)
    assert [(outcome.status, outcome.reason) for outcome in first] == [("interrupted", "stopped")] * 2
    done = sum(queries.run(db, outcome.run_id).cases_done for outcome in first)
    again = play(db, both(of), (told := []).append)
    assert [(outcome.run_id, outcome.status) for outcome in again] == [
        (outcome.run_id, "whole") for outcome in first
    ]
    assert told[0].done == done == 7
    fresh = play(db, both(of))
    assert [results(db, one.run_id) for one in again] == [results(db, one.run_id) for one in fresh]


def test_of_another_system_it_begins_anew(db, tmp_path):
    """What was interrupted of another system, or by other trials, or cancelled by a person, is left."""
    of, stop = suite(tmp_path, cases(4)), threading.Event()
    first = play(db, both(of), stop_after(3, stop), stop)
    assert play(db, both(of, trials=3))[0].run_id not in {one.run_id for one in first}
    changed = [replace(one, public_config={"k": 2}) for one in both(of)]
    assert play(db, changed)[0].run_id not in {one.run_id for one in first}
    assert [queries.run(db, one.run_id).status for one in first] == ["interrupted"] * 2


def test_what_is_gone_on_with(db, tmp_path):
    """Only within a day of its beginning, and not once a person has cancelled it."""
    of, stop = suite(tmp_path, cases(4)), threading.Event()
    plans = both(of)
    row = queries.run(db, play(db, plans, stop_after(3, stop), stop)[0].run_id)
    hours = timedelta(hours=1)
    assert to_go_on([row], plans[0], row.started_at + 23 * hours) == row
    assert to_go_on([row], plans[0], row.started_at + 25 * hours) is None
    assert to_go_on([row._replace(cancelled=True)], plans[0], row.started_at) is None
    assert to_go_on([row], compared(plans[0], "c", COMMAND), row.started_at) is None


def test_is_no_run_to_resume(db, tmp_path):
    """`run --resume` leaves a side of a comparison alone, and says what goes on with it."""
    stop = threading.Event()
    outcomes = play(db, both(suite(tmp_path, cases(4))), stop_after(3, stop), stop)
    with pytest.raises(NothingToResume, match="no run is interrupted"):
        interrupted(db, Settings())
    with pytest.raises(NothingToResume, match="memtrend compare a b --suite small"):
        interrupted(db, Settings(), [outcomes[0].run_id])


def test_a_broken_side(db, tmp_path):
    """Where one adapter is broken its run is void, and the other backend is asked nothing."""
    notes = tmp_path / "journal"
    plans = both(suite(tmp_path, cases(4)), journal=str(notes), b="Broken")
    (outcome,) = play(db, plans)
    assert (outcome.status, queries.run(db, outcome.run_id).backend) == ("void", "b")
    assert queries.count_runs(db) == 1
    assert [line for line in notes.read_text().splitlines() if "check" not in line and "recall" in line] == []


def test_an_invalid_side(db, tmp_path):
    """A side with too many errors is invalid, while the other one's run is whole and kept."""
    refusing = plan(suite(tmp_path, cases(4)), "Refusing", name="b", options={"word": "door"})
    good = compared(plan(refusing.suite, name="a"), "b", COMMAND)
    outcomes = play(db, [good, compared(replace(refusing, limits=RunLimits(timeout_s=5)), "a", COMMAND)])
    assert [outcome.status for outcome in outcomes] == ["whole", "invalid"]
    assert queries.run(db, outcomes[0].run_id).metrics["pass"].n == 4


def test_needs_both_backends(db, tmp_path):
    """While another run has one of them nothing is run, and the message names it."""
    with BackendLease(db, "b", threading.Event()), pytest.raises(InstanceBusy, match="backend b is in use"):
        play(db, both(suite(tmp_path, cases(2))))
    assert queries.count_runs(db) == 0


# Which are taken from the record


@pytest.fixture
def row(db, tmp_path):
    """A run of one trial at noon."""
    outcome = run(plan(suite(tmp_path, cases(2))), db)
    return queries.run(db, outcome.run_id)._replace(started_at=NOON)


def nights(row, *trials, at=NOON):
    """Runs of so many trials, a day apart, the newest at `at`."""
    last = len(trials) - 1
    return tuple(
        row._replace(id=place, trials=n, started_at=at - timedelta(days=last - place))
        for place, n in enumerate(trials)
    )


def test_the_newest_that_are_enough(row):
    """Of a side's runs the newest are taken that have the trials together; none where all have too few."""
    rows = nights(row, 1, 4, 1, 2, 1)
    assert taken(rows, 4) == rows[2:]
    assert taken(rows, 5) == rows[1:]
    assert taken(rows, 10) == taken((), 1) == ()


@pytest.mark.parametrize(
    ("a", "b", "asked"),
    [
        ((4, True, 0), (4, True, 0), (False, False)),
        ((4, True, 0), (4, True, 23), (False, False)),
        ((4, True, 0), (4, True, 25), (True, True)),
        ((4, True, 0), (3, True, 0), (True, True)),
        ((3, False, 0), (3, True, 0), (False, True)),
        ((3, True, 0), (1, False, 99), (True, False)),
        ((1, False, 0), (4, True, 99), (False, False)),
        ((1, False, 0), (1, False, 99), (False, False)),
    ],
)
def test_who_is_asked_now(row, a, b, asked):
    """(trials, live, hours ago): of the past nobody is; a live side with too few trials is, and two live ones
    together, also where their newest runs lie more than a day apart."""
    sides = [Held(nights(row, n, at=NOON - timedelta(hours=ago)), live) for n, live, ago in (a, b)]
    assert to_run(*sides, 4) == asked


# Another release

PINNED = """
[backends.mine]
type = "{type}"
package = "thing==2.0"
directory = "stores/mine"
with = ["other==1.0"]
{more}
[suites.small]
path = "small.jsonl"
"""


def of_project(folder, type="keyword", more=""):
    project(folder, PINNED.format(type=type, more=more), LINES)
    return configured(folder / "memtrend.toml")


@pytest.mark.parametrize("release", ["2.1", "thing==2.1"])
def test_another_release(tmp_path, release):
    """It is the backend with the version replaced, under a name and with a store of its own."""
    found = release_config(of_project(tmp_path), "mine", release)
    assert (found.name, found.isolation.package, found.isolation.extra) == (
        "mine@2.1",
        "thing==2.1",
        ("other==1.0",),
    )
    assert found.directory == tmp_path / "stores" / "mine@2.1"


@pytest.mark.parametrize(
    ("release", "type", "more", "said"),
    [
        ("no such", "keyword", "", "'no such' is no release of thing==2.0"),
        ("else==2.1", "keyword", "", "'else==2.1' is no release of thing==2.0"),
        (
            "2.1",
            "qdrant",
            'config = { url = "http://localhost:6333" }',
            "would share the store that config names",
        ),
    ],
)
def test_what_is_no_release(tmp_path, release, type, more, said):
    """What names no release, or would share a store of the team's, is refused with what to do."""
    with pytest.raises(SettingsError, match=said):
        release_config(of_project(tmp_path, type, more), "mine", release)
