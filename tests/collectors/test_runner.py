"""A run keeps every answer, and says truly how it ended, whatever its backend does."""

import json
import time
import weakref
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from collectors.lease import InstanceBusy
from collectors.plans import RunLimits
from collectors.rescoring import rescore
from collectors.runner import run
from collectors.scenario import Played
from store import models as m
from store import queries
from tests.collectors.odd_backends import GARBAGE
from tests.collectors.playground import case, cases, events, journal, plan, results, suite, value

pytestmark = pytest.mark.usefixtures("no_pauses")
SIX = cases(6)


@pytest.fixture
def six(tmp_path):
    return suite(tmp_path, SIX)


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "journal"


def by_hand(db, table):
    """How many rows there are, and how many the record ought to have of one kind."""
    with db.read() as connection:
        return connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()


# How it goes when all is well


def test_whole(db, six):
    """A run that gets its answers is whole: each case is there once, with metrics over all of them."""
    outcome = run(plan(six, trials=2, meta={"build": "412"}, trigger="test", owner="search"), db)
    assert (outcome.status, outcome.reason) == ("whole", None)
    row = queries.run(db, outcome.run_id)
    assert (row.status, row.cases_done, row.cases_total, row.errors) == ("whole", 12, 12, 0)
    assert (row.suite_version, row.trials, row.trigger, row.meta) == (
        six.version,
        2,
        "test",
        {"build": "412"},
    )
    assert row.finished_at is not None
    assert {(case, trial) for case, trial in results(db, outcome.run_id)} == {
        (probe.case, trial) for probe in six.probes for trial in (1, 2)
    }
    assert row.metrics["pass"] == queries.Rolled(1.0, pytest.approx(0.61, abs=0.01), pytest.approx(1.0), 6)
    assert {"recall_ms", "plant_ms", "settle_ms", "error_rate", "attempts", "money"} <= row.metrics.keys()


def test_trials_plant_again(db, six, notes):
    """A trial is the whole scenario again, in a namespace of its own."""
    run(plan(six, trials=2, options={"journal": str(notes)}), db)
    boxes = {box for verb, box, _ in events(notes, "remember")}
    assert len(boxes) == 12
    assert journal(notes)["remember", "case-amber/w1"] == 2


def test_progress(db, six):
    """Progress is told from 0 to all cases, each scenario as it is stored."""
    told = []
    outcome = run(plan(six), db, on_progress=told.append)
    assert [one.done for one in told] == list(range(7))
    assert {(one.run_id, one.suite, one.backend, one.total) for one in told} == {
        (outcome.run_id, "small", "mine", 6)
    }


def test_stored_before_the_next(db, six):
    """When progress tells of a scenario its answers are in the record already."""

    def look(progress):
        assert len(queries.finished_scenarios(db, progress.run_id)) == progress.done
        assert by_hand(db, "case_result") == progress.done

    run(plan(six), db, on_progress=look)


def test_owners(db, six):
    """A run belongs to the owner of its backend; the suite keeps its own."""
    run(plan(six, owner="search", suite_owner="words"), db)
    assert {row.name: row.owner for row in queries.suites(db)} == {"small": "words"}
    assert {row.name: row.owner for row in queries.backends(db)} == {"mine": "search"}


def test_environment(db, six):
    """Runs in equal environments share its row, which holds the configuration as it may be shown."""
    first = run(plan(six, public_config={"type": "Shelf", "api_key": "***"}), db)
    same = run(plan(six, public_config={"type": "Shelf", "api_key": "***"}), db)
    other = run(plan(six, public_config={"type": "Shelf", "infer": True}), db)
    ids = [queries.run(db, one.run_id).environment_id for one in (first, same, other)]
    assert ids[0] == ids[1] != ids[2]
    told = queries.environment(db, ids[0])
    assert told["config"] == {"type": "Shelf", "api_key": "***"}
    assert {"pytest", "sqlalchemy", "wordllama"} <= told["packages"].keys()


def test_rescored(db, six):
    """The answers that a run keeps are enough to score it again, to the same numbers."""
    outcome = run(plan(six, options={"lost": "amber"}), db)
    before = queries.run(db, outcome.run_id).metrics, results(db, outcome.run_id)
    rescore(db, outcome.run_id)
    assert (queries.run(db, outcome.run_id).metrics, results(db, outcome.run_id)) == before


# One at a time


def test_busy(db, six):
    """While a run has the backend another one fails by name, and leaves no trace."""

    def second(progress):
        with pytest.raises(InstanceBusy, match="backend mine is in use"):
            run(plan(six), db)

    assert run(plan(six), db, on_progress=second).status == "whole"
    assert queries.count_runs(db) == 1


# Backends that fail


def test_every_third_call_throws(db, six):
    """Calls that fail in passing cost attempts, which are told, and no quality."""
    good = run(plan(six, name="good"), db)
    odd = run(plan(six, "EveryThird", limits=RunLimits(5, attempts=3)), db)
    assert odd.status == "whole"
    assert value(db, odd, "first_try_errors") == pytest.approx(3 / 6)
    assert value(db, odd, "error_rate") == 0
    assert value(db, odd, "attempts") == pytest.approx(9 / 6)
    assert quality(results(db, odd.run_id)) == quality(results(db, good.run_id))
    assert value(db, odd, "pass") == value(db, good, "pass") == 1


def quality(found):
    """What was scored, by case and trial, without the attempts it took."""
    return {key: (status, passed, scores) for key, (status, passed, _, _, _, scores) in found.items()}


def test_one_refused(db, tmp_path):
    """A case that gets no answer is an error: it is no number, and the mean says how many it is of."""
    asked = suite(tmp_path, [*SIX, case("refuse")])
    outcome = run(plan(asked, "Refusing", limits=RunLimits(5, max_error_rate=0.2)), db)
    row = queries.run(db, outcome.run_id)
    assert (row.status, row.cases_done, row.errors) == ("whole", 7, 1)
    assert (row.metrics["pass"].n, row.metrics["pass"].mean) == (6, 1.0)
    assert (row.metrics["error_rate"].n, row.metrics["error_rate"].mean) == (7, pytest.approx(1 / 7))
    status, passed, failure, *_, scores = results(db, outcome.run_id)["case-refuse", 1]
    assert (status, passed, failure, scores) == ("error", None, "backend error", ())


@pytest.mark.parametrize(("limit", "status"), [(0.24, "invalid"), (0.25, "whole")])
def test_too_many_errors(db, tmp_path, limit, status):
    """More errors than the limit make a run invalid, and the series of quality know nothing of it."""
    asked = suite(tmp_path, [*SIX, case("refuse"), case("refused")])
    outcome = run(plan(asked, "Refusing", limits=RunLimits(5, max_error_rate=limit)), db)
    assert outcome.status == status
    assert queries.run(db, outcome.run_id).status == status
    points = queries.trend(db, "small", "pass")
    assert len(points) == (status == "whole")
    if status == "invalid":
        assert outcome.reason == "2 of 8 answers were errors, over the limit of 24%"
        assert value(db, outcome, "error_rate") == 0.25


def test_skipped(db, tmp_path):
    """What a backend cannot be asked does not apply: no number, no error, and not of those counted."""
    by_id = case(
        "hazel", expect_any=[], expect_ids=["hazel"], writes=[{"id": "hazel", "text": "a hazel key"}]
    )
    outcome = run(plan(suite(tmp_path, [*SIX, by_id]), "Bare", limits=RunLimits(5, max_error_rate=0)), db)
    row = queries.run(db, outcome.run_id)
    assert (row.status, row.cases_done, row.errors) == ("whole", 7, 0)
    assert {
        rolled.n for name, rolled in row.metrics.items() if name in ("pass", "error_rate", "attempts")
    } == {6}
    assert results(db, outcome.run_id)["case-hazel", 1] == ("skipped", None, None, 0, None, ())


def test_nothing_applies(db, tmp_path):
    """A run of which nothing applies is void, says so, and has no numbers at all."""
    by_id = case(
        "hazel", expect_any=[], expect_ids=["hazel"], writes=[{"id": "hazel", "text": "a hazel key"}]
    )
    outcome = run(plan(suite(tmp_path, [by_id]), "Bare"), db)
    assert (outcome.status, outcome.reason) == ("void", "no case of small applies to this backend")
    assert not {"pass", "error_rate", "recall_ms"} & queries.run(db, outcome.run_id).metrics.keys()


def test_stored_and_then_raised(db, tmp_path):
    """A planting that raised after it had stored is replayed: that is counted, and nothing is doubled."""
    asked = suite(tmp_path, [*SIX, case("stumble")])
    outcome = run(plan(asked, "StoresThenRaises"), db)
    row = queries.run(db, outcome.run_id)
    assert (row.status, row.cases_done, row.errors) == ("whole", 7, 0)
    assert len(results(db, outcome.run_id)) == by_hand(db, "case_result") == 7
    with db.read() as connection:
        attempts = Counter(connection.execute(m.scenario_result.select()).scalars("attempts"))
    assert attempts == {1: 6, 2: 1}


def test_hanging(db, tmp_path, notes):
    """A call that hangs costs its scenario; the backend is opened anew, and later scenarios are fine."""
    asked = suite(tmp_path, [*SIX[:3], case("hang"), *SIX[3:]])
    options = {"journal": str(notes)}
    outcome = run(plan(asked, "Hanging", limits=RunLimits(0.4, max_error_rate=0.5), options=options), db)
    assert outcome.status == "whole"
    found = results(db, outcome.run_id)
    assert [key for key, one in found.items() if one[0] == "error"] == [("case-hang", 1)]
    assert value(db, outcome, "pass") == 1
    assert journal(notes)["open", ""] == 2


def test_never_settling(db, six):
    """A backend that never settles is recorded as such, asked all the same, and its run is whole."""
    outcome = run(plan(six, "Unsettled"), db)
    assert (outcome.status, value(db, outcome, "pass")) == ("whole", 1.0)
    with db.read() as connection:
        rows = connection.execute(m.scenario_result.select()).all()
    assert {(row.status, row.error) for row in rows} == {("ok", "not indexed after 2 s")}


# Broken adapters


@pytest.mark.parametrize("kind", sorted(GARBAGE.keys() - {"surrogate"}))
def test_garbage(db, six, kind):
    """An adapter that answers in wrong types voids the run before it begins, and the reason says which."""
    outcome = run(plan(six, "Garbage", options={"kind": kind, "word": ""}), db)
    row = queries.run(db, outcome.run_id)
    assert (row.status, row.reason, row.cases_done, row.metrics) == ("void", outcome.reason, 0, {})
    assert outcome.reason.startswith("recall: ")
    assert "(recall(scope, query, k) returns Recall(hits), each a Hit with id and text.)" in outcome.reason
    assert row.environment_id is not None, "what changed may be why"


@pytest.mark.parametrize("kind", sorted(GARBAGE.keys() - {"surrogate"}))
def test_garbage_later(db, tmp_path, kind):
    """An adapter that answers some questions in wrong types makes errors of these cases alone."""
    asked = suite(tmp_path, [*SIX, case("garbage")])
    outcome = run(plan(asked, "Garbage", options={"kind": kind}), db)
    assert outcome.status == "whole"
    found = results(db, outcome.run_id)
    assert {key: one[0] for key, one in found.items() if one[0] != "ok"} == {("case-garbage", 1): "error"}


@pytest.mark.parametrize(("type", "options"), [("Garbage", {"kind": "surrogate"}), ("Rich", {})])
def test_odd_but_right(db, tmp_path, type, options):
    """Half a character, numpy's numbers and odd metadata are stored as JSON can hold them, and score."""
    outcome = run(plan(suite(tmp_path, [*SIX, case("garbage")]), type, options=options), db)
    assert outcome.status == "whole"
    assert value(db, outcome, "error_rate") == 0
    for row in queries.run_cases(db, outcome.run_id):
        (stored,) = queries.case_results(db, row.case_id, outcome.run_id)
        json.dumps(stored.detail, allow_nan=False).encode()
        assert stored.detail["hits"]
    rescore(db, outcome.run_id)


def test_broken(db, six):
    """A backend that cannot be opened voids the run in its own words."""
    outcome = run(plan(six, "Broken"), db)
    assert (outcome.status, outcome.reason) == ("void", "the server says: unknown key")


@pytest.mark.parametrize(("lives", "status"), [(1, "whole"), (2, "void")])
def test_killed_in_its_checks(db, six, tmp_path, lives, status):
    """That an adapter's process is killed while it is checked says nothing of it, unless it happens twice."""
    outcome = run(plan(six, "Dying", options={"lives": lives, "graves": str(tmp_path / "graves")}), db)
    reason = None if status == "whole" else "the worker was ended by SIGKILL"
    assert (outcome.status, outcome.reason) == (status, reason)


def test_unknown_type(db, six):
    """A type that does not exist voids the run, and the words say what there is."""
    odd = plan(six)
    outcome = run(replace(odd, backend=replace(odd.backend, type="chrome")), db)
    assert outcome.status == "void"
    assert "known: chroma, dense, everything, faulty, http, hybrid, keyword" in outcome.reason


@pytest.mark.parametrize("verb", ["reset", "recall", "settle", "count"])
def test_hanging_checks(db, six, verb):
    """An adapter that hangs in its checks voids the run within the time of one call, by the verb's name."""
    limits = RunLimits(timeout_s=0.4)
    outcome = run(plan(six, "Hanging", limits=limits, options={"verb": verb, "word": ""}), db)
    assert outcome.status == "void"
    assert f"{verb}: no answer within 0.4 s" in outcome.reason


def test_slow_but_sound(db, tmp_path):
    """The time limit is of one call: an adapter whose checks take longer together is sound."""
    limits = RunLimits(timeout_s=0.5)
    outcome = run(plan(suite(tmp_path, cases(1)), "Slow", limits=limits, options={"seconds": 0.08}), db)
    assert outcome.status == "whole"


# Side by side


def test_concurrent(db, tmp_path):
    """Scenarios of a concurrent backend are played at the same time: each waits here for the others."""
    four = [case(f"{key}s", f"together with the {key}s key") for key in ("amber", "basil", "cedar", "daisy")]
    limits = RunLimits(timeout_s=20, concurrency=4)
    outcome = run(plan(suite(tmp_path, four), "Together", limits=limits, options={"parties": 4}), db)
    assert (outcome.status, value(db, outcome, "pass"), value(db, outcome, "error_rate")) == ("whole", 1, 0)


def test_never_more_than_allowed(db, tmp_path, notes):
    """No more scenarios are played at once than `concurrency` says."""
    limits = RunLimits(timeout_s=5, concurrency=3)
    asked = suite(tmp_path, cases(12))
    run(plan(asked, "Counted", limits=limits, options={"journal": str(notes)}), db)
    assert {int(what) for _, _, what in events(notes, "busy")} <= {1, 2, 3}


@pytest.mark.parametrize("backend", ["Shelf", "Counted"])
def test_few_answers_are_held(db, tmp_path, monkeypatch, backend):
    """What is stored is let go: a run holds the answers of few scenarios, however many it plays."""
    held = weakref.WeakSet()

    class Watched(Played):
        __slots__ = ("__weakref__",)
        __hash__ = object.__hash__

        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            held.add(self)

    monkeypatch.setattr("collectors.scenario.Played", Watched)
    most = []
    limits = RunLimits(timeout_s=5, concurrency=2)
    asked = suite(tmp_path, cases(20))
    run(plan(asked, backend, limits=limits), db, on_progress=lambda _: most.append(len(held)))
    assert max(most) <= 7


def test_slow_git(db, six, monkeypatch):
    """The time limit is of the backend's calls: a git that takes longer voids no run."""
    monkeypatch.setattr("collectors.environment.git_revision", lambda _: time.sleep(0.6) or {})
    outcome = run(plan(six, limits=RunLimits(timeout_s=0.5)), db)
    assert outcome.status == "whole"


def test_one_after_the_other(db, six, notes):
    """A backend that does not declare it is never asked by two scenarios at once."""
    run(plan(six, "Slow", options={"journal": str(notes), "seconds": 0.001}), db)
    boxes = [box for _, box, _ in events(notes, "reset", "remember", "settle", "recall")]
    changes = sum(before != after for before, after in pairwise(boxes))
    assert changes == 5


def test_side_by_side_as_one_by_one(db, tmp_path):
    """Played side by side or one after the other, a suite has the same results."""
    asked = suite(tmp_path, cases(20))
    alone = run(plan(asked, "Durable", trials=2, options={"lost": "fjord key"}), db)
    beside = run(plan(asked, "Counted", trials=2, options={"lost": "fjord key"}), db)
    assert results(db, beside.run_id) == results(db, alone.run_id)
    assert (alone.status, beside.status) == ("whole", "whole")


def test_reopening_runs_alone_and_last(db, tmp_path, notes):
    """Scenarios that close the backend are played when no other one is."""
    reopening = [
        {"id": f"door-{n}", "steps": [{"plant": [f"door {n} opens"]}, {"reopen": True}, again(n)]}
        for n in range(3)
    ]
    asked = suite(tmp_path, [*reopening, *cases(8)])
    outcome = run(plan(asked, "Counted", options={"journal": str(notes)}), db)
    assert (outcome.status, value(db, outcome, "pass")) == ("whole", 1.0)
    told = events(notes, "recall", "close", "busy")
    first = next(place for place, (verb, *_) in enumerate(told) if verb == "close")
    assert sum(verb == "recall" and "key" in what for verb, _, what in told[:first]) == 8
    assert {what for verb, _, what in told[first:] if verb == "busy"} == {"1"}


def again(number):
    return {"probe": f"door {number}", "expect_any": [f"door {number} opens"], "k": 1}


def test_closing_that_fails(db, six):
    """A backend that cannot be closed has answered all the same."""
    assert run(plan(six, "Unclosable"), db).status == "whole"


def test_closed_at_the_end(db, six, notes):
    """A run closes what it opened, once."""
    run(plan(six, "Durable", options={"journal": str(notes)}), db)
    assert [verb for verb, *_ in events(notes, "open", "close")] == ["open", "close"]
