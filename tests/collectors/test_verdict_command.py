"""`memtrend verdict`: is a run worse, and how sure is that?"""

import pytest

from store import queries, writes
from tests.collectors.playground import LOSING, LOST, cases, one_document, project

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def record(tmp_path, good_record):
    """A record with six good nights of a backend that now loses three of 16 cases."""
    project(tmp_path, LOSING.format(type="Shelf"), cases(16))
    return good_record


@pytest.fixture
def worse(record, ask, tmp_path):
    """The run that is worse, with one look at it."""
    ran = ask(tmp_path, "run", "--suite", "small", "--backend", "mine")
    assert (
        "SUSPECTED: 3 of 16 cases that had passed in 6 nights failed in at least 3 of 4 trials." in ran.stderr
    )
    return "7"


def test_a_good_run(record, ask, tmp_path):
    """A run without a change is told with what could have gone unseen, and ends with 0."""
    told = ask(tmp_path, "verdict", "6")
    assert told.returncode == 0
    assert told.stdout.splitlines()[0] == "Provisional: Nothing beyond the noise of the last 5 nights."
    assert "could have gone unseen" in told.stdout


def test_a_first_run(record, ask, tmp_path):
    """What cannot be told ends with 3 and the reason."""
    told = ask(tmp_path, "verdict", "1")
    assert (told.returncode, told.stdout.splitlines()[0]) == (3, "Cannot tell: The first run of this series.")


def test_a_run_that_is_worse(worse, ask, tmp_path):
    """The evidence in a sentence, the lost cases by name and what it was held against; ends with 1."""
    told = ask(tmp_path, "verdict", worse)
    assert told.returncode == 1
    assert told.stdout.startswith("Suspected: 3 of 16 cases that had passed in 6 nights")
    assert f"lost: {', '.join(LOST)}" in told.stdout
    assert "held against 6 nights on 1 day (runs 1 to 6)" in told.stdout


def test_one_look_more(worse, ask, tmp_path, record):
    """--look asks again, and what was suspected is confirmed, and is an alarm at once."""
    told = ask(tmp_path, "verdict", worse, "--look")
    assert "alert 1: mine on small got worse; memtrend alerts show 1" in told.stderr
    assert (told.returncode, told.stdout.splitlines()[0].split(":")[0]) == (1, "Worse")
    assert [row.stage for row in queries.verdict_looks(record, 7)] == ["suspicion", "suspected", "confirmed"]


def test_for_scripts(worse, ask, tmp_path):
    """--json is one document with the verdict, its evidence and what it is short of."""
    told = ask(tmp_path, "verdict", worse, "--json")
    document = one_document(told)
    assert (document["run"], document["verdict"], document["stage"]) == (7, "worse", "suspected")
    assert (document["lost"], document["provisional"]) == (LOST, True)
    assert document["difference"]["n"] == 16
    assert document["evidence"].startswith("3 of 16 cases")


def test_judged_anew_the_record_keeps_what_was_said(worse, ask, tmp_path, record):
    """Where a decision changes the verdict, the former is told beside it, and stays in the record."""
    writes.decide_baseline(record, "small", "mine", "reset", [], "new index", "tester")
    told = ask(tmp_path, "verdict", worse)
    assert told.returncode == 3
    assert "UTC, the verdict was: worse suspected" in told.stderr
    assert [row.stage for row in queries.verdict_looks(record, 7)] == ["suspicion", "suspected"]


@pytest.mark.parametrize("run", ["8", "99"])
def test_what_has_no_verdict_is_refused(worse, ask, tmp_path, run):
    """A look, or a run that is not there, has no verdict; the message says what one needs."""
    told = ask(tmp_path, "verdict", run)
    assert told.returncode == 3
    why = {
        "8": "run 8 is a look at run 7: memtrend verdict 7",
        "99": "no run 99; memtrend runs lists them",
    }
    assert why[run] in told.stderr
