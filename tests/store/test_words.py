"""Findings as sentences: what a title says for every state that a page can be in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from store import words
from store.metrics import METRICS
from store.words import RunFinding, Standing

NOW = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)


def nights(outcomes: str) -> list[tuple[datetime, bool]]:
    """ "++-" are two passes and a failure, the last one today."""
    first = NOW - timedelta(days=len(outcomes) - 1)
    return [(first + timedelta(days=day), outcome == "+") for day, outcome in enumerate(outcomes)]


# Numbers


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("pass", 0.9111, "91.1 %"),
        ("pass", 1.0, "100.0 %"),
        ("recall_ms", 312.4, "312 ms"),
        ("recall_ms", 2.4712, "2.47 ms"),
        ("recall_ms", 12345.6, "12,346 ms"),
        ("recall_ms", 0.00104, "<0.01 ms"),
        ("recall_ms", 0.0, "0 ms"),
        ("money", 0.00104, "$0.00104"),
        ("money", 0.0912, "$0.0912"),
        ("returned_n", 5.0, "5"),
        ("returned_tokens", 401.3, "401 tokens"),
    ],
)
def test_a_value_has_its_unit(metric: str, value: float, expected: str) -> None:
    """Every value is shown with its unit, to three figures."""
    assert words.amount(metric, value) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (0.9, 0.917, "+1.7 points"),
        (0.917, 0.9, "−1.7 points"),
        (0.5, 0.5, "±0 points"),
        (0.5, 0.50004, "±0 points"),
    ],
)
def test_a_difference_has_a_sign(old: float, new: float, expected: str) -> None:
    """Differences of shares are points; one that rounds to nothing is ±0."""
    assert words.difference("pass", old, new) == expected


@given(some.sampled_from(sorted(METRICS)), some.floats(0, 1e6), some.floats(0, 1e6))
def test_every_metric_has_words(metric: str, old: float, new: float) -> None:
    """No metric and no pair of values is without a label, an amount and a difference."""
    assert words.label(metric)
    assert words.amount(metric, old)
    assert words.difference(metric, old, new)[0] in "+−±"
    assert " to " in words.interval(metric, old, new)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (0.2718, 0.2661, "−0.006 ms"),
        (312.0, 281.4, "−31 ms"),
        (2.0, 2.5, "+0.50 ms"),
        (0.0, 0.0, "±0 ms"),
        (0.0011, 0.0084, "±0 ms"),
    ],
)
def test_a_difference_is_no_finer_than_its_values(old: float, new: float, expected: str) -> None:
    """A difference has the decimals that the values are shown with."""
    assert words.difference("recall_ms", old, new) == expected


def test_no_interval_is_no_words() -> None:
    """Where there is no interval nothing stands in its place."""
    assert words.interval("pass", None, 0.4) == ""


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0.4 s"), (41, "41 s"), (89, "89 s"), (100, "2 min"), (480, "8 min"), (7500, "2 h 5 min")],
)
def test_durations_read_like_speech(seconds: float, expected: str) -> None:
    """Durations are rounded to what matters at their size."""
    assert words.duration(seconds) == expected


def test_dates_name_another_year() -> None:
    """A date of this year is short, one of another year says so."""
    assert words.moment(datetime(2026, 11, 3, 3, 7, tzinfo=UTC), NOW) == "3 Nov, 03:07"
    assert words.day(datetime(2025, 12, 31, tzinfo=UTC), NOW) == "31 Dec 2025"


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ([-0.5, 0], "First runs today, 09:00 to 09:30: the axis grows with the next ones, up to 90 days"),
        ([0, 0], "First runs today, at 09:30: the axis grows with the next ones, up to 90 days"),
        (
            [-48, -47],
            "First runs on 28 Nov, 09:30 to 10:30: the axis grows with the next ones, up to 90 days",
        ),
        ([-25, 0], ""),
    ],
)
def test_a_young_record_says_why_its_axis_is_short(hours: list[float], expected: str) -> None:
    """Runs of a few hours are said to be the first, as long as they reach over no more than a day."""
    first, last = (NOW + timedelta(hours=hour) for hour in hours)
    assert words.first_day(first, last, NOW, 90) == expected


def test_lists_read_like_speech() -> None:
    """Names are joined by commas and one "and"."""
    assert [words.listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


# Trends


STANDINGS = [Standing("mem0", 0.911), Standing("hybrid", 0.944), Standing("dense", 0.806)]


@pytest.mark.parametrize(
    ("metric", "standings", "broken", "expected"),
    [
        ("pass", [], {}, "No whole run of golden in this range"),
        ("pass", STANDINGS, {}, "Pass rate on golden: best hybrid 94.4 %, worst dense 80.6 %"),
        ("pass", STANDINGS[:1], {}, "Pass rate on golden: mem0 91.1 %"),
        ("pass", [STANDINGS[0], Standing("b", 0.911)], {}, "Pass rate on golden: all 91.1 %"),
        ("pass", STANDINGS, {"mem0": 3}, "mem0 fails 3 cases that it had passed"),
        ("pass", STANDINGS, {"mem0": 1, "zep": 8}, "zep fails 8 cases that it had passed; mem0 fails 1"),
        (
            "recall_ms",
            [Standing("a", 8.0), Standing("b", 300.0)],
            {"a": 2},
            "Recall time on golden: best a 8 ms, worst b 300 ms",
        ),
    ],
)
def test_trends_say_what_broke(
    metric: str, standings: list[Standing], broken: dict[str, int], expected: str
) -> None:
    """Cases that broke come first; else the title says where backends stand, the better way up."""
    assert words.trends_title("golden", metric, standings, broken) == expected


def test_trends_tell_other_news_beside_what_broke() -> None:
    """News of other backends stand beside the cases that broke, and before where backends stand."""
    news = ["old got better, 1 lost and 7 gained"]
    assert words.trends_title("golden", "pass", STANDINGS, {}, news) == news[0]
    both = words.trends_title("golden", "pass", STANDINGS, {"mem0": 3}, news)
    assert both == f"mem0 fails 3 cases that it had passed; {news[0]}"


# Runs


@pytest.mark.parametrize(
    ("recent", "running", "newest", "expected"),
    [
        ({}, 0, None, "No run yet"),
        ({}, 1, None, "One is running"),
        ({}, 0, "12 Nov", "No run in the last 24 hours; the newest is of 12 Nov"),
        ({"whole": 15}, 0, "30 Nov", "All 15 runs of the last 24 hours count"),
        ({"whole": 1}, 0, "30 Nov", "1 of 1 run of the last 24 hours counts"),
        (
            {"whole": 14, "void": 1},
            2,
            "30 Nov",
            "14 of 15 runs of the last 24 hours count; two are running",
        ),
    ],
)
def test_runs_count_the_last_day(
    recent: dict[str, int], running: int, newest: str | None, expected: str
) -> None:
    """The title counts the runs of the last day and those that go on."""
    assert words.runs_title(recent, running, newest) == expected


def test_runs_that_found_something_worse_are_in_the_title() -> None:
    """Who opens the list sees first whether a run of the last day found something worse."""
    told = words.runs_title({"whole": 15}, 0, "30 Nov", worse=2)
    assert told == "All 15 runs of the last 24 hours count; two found something worse"


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        ("confirm:931", "second look at 931"),
        ("cli", "command line"),
        ("nightly", "nightly"),
        ("deploy:41",) * 2,
    ],
)
def test_what_started_a_run(trigger: str, said: str) -> None:
    """A look that asks once more, and a run by hand, are told in words; a schedule by its name."""
    assert words.trigger(trigger) == said


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (RunFinding("running", done=118, total=180), "Running: 118 of 180 cases are in"),
        (RunFinding("interrupted", done=60, total=180), "Interrupted after 60 of 180 cases"),
        (
            RunFinding("invalid", done=77, errors=31),
            "Invalid: 31 of 77 answers were errors, so the run does not count",
        ),
        (RunFinding("void"), "Void: the backend was not asked, so the run does not count"),
        (RunFinding("whole", 164, 180), "164 of 180 cases passed in the first whole run of this series"),
        (RunFinding("whole", 164, 180, previous=7), "164 of 180 cases passed, the same as in run 7"),
        (
            RunFinding("whole", 164, 180, previous=7, lost=3, gained=1),
            "164 of 180 cases passed; 3 lost and 1 gained since run 7",
        ),
    ],
)
def test_a_run_says_what_it_came_to(run: RunFinding, expected: str) -> None:
    """A whole run counts its cases against the run before; another says why it does not count."""
    assert words.run_title(run) == expected


def test_a_reason_is_followed_by_what_it_means() -> None:
    """A broken run's reason ends with what to make of it."""
    assert words.run_reason("void", "no such host") == (
        "no such host. The adapter failed its checks before the first question. Quality is unknown."
    )
    assert words.run_reason("whole", None) == ""


@pytest.mark.parametrize("status", ["whole", "running", "invalid", "void", "interrupted"])
def test_every_state_has_a_word(status: str) -> None:
    """No state of a run is shown by its bare name."""
    assert words.status(status)[0].isupper()


# Cases


@pytest.mark.parametrize(
    ("outcomes", "kind", "told"),
    [
        ("", "unasked", "not asked"),
        ("----", "never", "never passed"),
        ("++++", "passing", "passes"),
        ("--++", "passing", "passes since 29 Nov"),
        ("+++-+++++++++++++++++++++", "passing", "passes, failed 1 of 25"),
        ("++--", "failing", "failing since 29 Nov"),
        ("+++++++++-", "failing", "failing since 30 Nov"),
        ("-+-------------------", "failing", "fails, passed 1 of 21"),
        ("+-+-+-+", "flaky", "flaky, passed 4 of 7"),
    ],
)
def test_a_history_has_words(outcomes: str, kind: str, told: str) -> None:
    """A case's runs on a backend come down to a few words."""
    assert words.streak(nights(outcomes), NOW)[:2] == (kind, told)


@pytest.mark.parametrize(
    ("own", "failure", "others", "expected"),
    [
        ("", None, [], "mem0 has not been asked this yet"),
        (
            "++--",
            "stale fact first",
            ["++++", "----"],
            "mem0 fails it since 29 Nov: stale fact first; 1 of 2 others passes",
        ),
        ("++--", None, ["--", "--"], "mem0 fails it since 29 Nov; no other backend passes it"),
        ("++--", None, ["++", "++"], "mem0 fails it since 29 Nov; every other backend passes it"),
        ("----", "not stored", [], "mem0 has never passed it: not stored"),
        ("++++", None, ["++", "++"], "mem0 passes it; so does every other backend"),
        ("++++", None, ["--"], "mem0 passes it; no other backend does"),
        ("++++", None, ["++", "++", "--"], "mem0 passes it; 2 of 3 others pass"),
        ("+-+-+-+", None, ["++"], "mem0 passes it on and off, 4 of 7 times"),
    ],
)
def test_a_case_says_who_passes_it(own: str, failure: str | None, others: list[str], expected: str) -> None:
    """The title tells the backend looked at, since when, why, and whether the others do better."""
    streaks = [words.streak(nights(other), NOW) for other in others]
    assert words.case_title("mem0", words.streak(nights(own), NOW), failure, streaks) == expected


def test_a_case_that_does_not_apply_is_not_lost() -> None:
    """Where a backend lacks what the question needs, the title says that, and others do not count it."""
    passing = words.streak(nights("++"), NOW)
    assert words.case_title("dense", words.INAPPLICABLE, None, [passing]) == "dense cannot be asked this"
    assert words.case_title("a", passing, None, [words.INAPPLICABLE]) == "a passes it"


def test_an_error_is_no_answer_and_no_silence() -> None:
    """A backend that could only err was asked all the same; nobody is compared with it."""
    passing = words.Streak("passing", "passes", "passes it")
    assert words.case_title("dense", words.ERRORED, None, [passing]) == "dense could not answer (error)"
    assert words.case_title("a", passing, None, [words.ERRORED]) == "a passes it"


# Suites


def test_a_suite_says_what_it_asks() -> None:
    """The title counts cases, tags and what is flaky, once a run could tell."""
    assert words.suite_title("golden", 180, 8, 0, 0) == (
        "golden asks 180 cases over 8 tags; no whole run has asked them yet"
    )
    assert (
        words.suite_title("golden", 180, 8, 5, 0)
        == "golden asks 180 cases over 8 tags; none of them is flaky"
    )
    assert (
        words.suite_title("golden", 180, 8, 5, 7)
        == "golden asks 180 cases over 8 tags; seven of them are flaky"
    )
    assert words.suite_title("mine", 3, 0, 5, 0) == "mine asks 3 cases; none of them is flaky"
    told = words.suite_title("mine", 3, 0, 5, 0, errors=2)
    assert told == "mine asks 3 cases; none of them is flaky; lint finds 2 errors in them"


def test_what_is_new_is_short() -> None:
    """A change of environment names three things and counts the rest."""
    changes = [
        ("packages.mem0ai", "2.1", "2.2"),
        ("python", "3.11", "3.12"),
        ("packages.x", "1", None),
        ("y", 1, 2),
    ]
    assert words.environment_news(changes) == "mem0ai 2.2, python 3.12, x gone, and 1 more"
    assert words.environment_news([]) == ""


@pytest.mark.parametrize(
    ("n", "expected"), [(1, "1 problem"), (100, "100 problems"), (101, "More than 100 problems")]
)
def test_problems_are_counted_as_far_as_anyone_would(n: int, expected: str) -> None:
    """The line above what went wrong has its number, and stops counting at a hundred."""
    assert words.problems_title(n) == f"{expected} in the last 24 hours"
