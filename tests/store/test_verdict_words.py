"""Verdicts as sentences: made of the stored evidence, the same for pages, messages and reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store import verdict_words as told
from store.evidence import Verdict, plain
from store.verdicts import judge
from tests.store.test_verdicts import CASES, GOOD, cases, leaky, record, row
from tests.store.test_verdicts_moved import NIGHTS_MS, latencies

LOST = row(3, 5, 8)


def content(verdict: Verdict) -> Any:
    """As the record gives it back."""
    return json.loads(json.dumps(plain(verdict)))


def after(looks: int, tonight=LOST, **fields: Any) -> Any:
    return content(judge(record(GOOD, tonight, *[[tonight] * 3] * looks, **fields)))


def swapped(rows):
    return [[1 - value for value in one] for one in rows]


@pytest.mark.parametrize(
    ("looks", "badge", "evidence"),
    [
        (0, ("unknown", "Suspicion"), "3 of 24 cases that had passed in 10 nights failed once."),
        (
            1,
            ("suspected", "Suspected"),
            "3 of 24 cases that had passed in 10 nights failed in at least 3 of 4 trials.",
        ),
        (
            2,
            ("worse", "Worse"),
            "3 of 24 cases that had passed in 10 nights failed in at least 6 of 7 trials.",
        ),
    ],
)
def test_a_loss_in_words(looks, badge, evidence):
    """The further the looks have come, the surer the badge, and the sentence counts trials and nights."""
    found = after(looks)
    assert told.badge(found) == badge
    assert told.evidence(found) == evidence


def test_critical_cases_are_named_as_such():
    """The sentence says how many of the lost cases are critical."""
    found = after(1, cases=cases(CASES, critical={3: True, 8: True}))
    assert told.evidence(found).endswith("failed in at least 3 of 4 trials; two of them critical.")


def test_a_gain_in_words():
    """What got better is told as gained, in green and not in alarm."""
    found = content(judge(record(swapped(GOOD), swapped([LOST])[0], swapped([LOST] * 3))))
    assert told.badge(found) == ("better", "Better")
    assert told.evidence(found).startswith("3 of 24 cases that had failed in 10 nights passed in at least")


def test_no_change_in_words():
    """What is unchanged says how far the suite can see, and what it was held against."""
    found = after(0, row())
    assert told.badge(found) == ("unchanged", told.UNCHANGED)
    assert told.evidence(found) == "Nothing beyond the noise of the last 10 nights."
    assert told.blind_spot(found) == "A loss of fewer than 2 cases of 24 could have gone unseen."
    assert told.held_against(found) == "10 nights on 10 days (runs 1 to 10)"
    assert told.moved(found) == []
    assert told.beats_dense(found) == ""


def test_few_nights_are_provisional():
    """Before five days the badge promises nothing."""
    found = content(judge(record(GOOD[:3], row())))
    assert told.badge(found) == ("provisional", "Provisional")


def test_a_first_run_in_words():
    """A reason takes the place of evidence, and there is nothing more to tell."""
    found = content(judge(record([], row())))
    assert told.badge(found) == ("unknown", "Cannot tell")
    assert told.evidence(found) == "The first run of this series."
    assert (told.how_much(found), told.blind_spot(found)) == ("", "")
    assert told.held_against(found) == "nothing yet"


def test_how_much_has_its_interval():
    """The other question is answered in points, with the interval and the number of cases."""
    text = told.how_much(after(2))
    assert text.startswith("−12.5 points (−")
    assert text.endswith("n 24")
    alone = {**after(2), "difference": {**after(2)["difference"], "low": None, "high": None}}
    assert told.how_much(alone) == "−12.5 points, n 24"


def test_a_leak_in_words():
    """A slow leak names the run it dates from, with both levels, and keeps its badge while it is carried."""
    new, carried = content(leaky()), content(leaky(frozenset({21})))
    assert told.badge(new) == told.badge(carried) == ("leak", "Slow leak")
    assert told.evidence(new).startswith("The pass rate sank slowly from 90")
    assert f"from run {new['leak']['first_bad']} on: no single night showed it." in told.evidence(new)


def test_what_moved_in_words():
    """A metric is told with its change in its unit or in per cent, and with how sure that is."""
    found = content(judge(record(GOOD, row(), values=latencies(NIGHTS_MS, 40.0))))
    (text,) = told.moved(found)
    assert text.endswith(" % (suspicion)")
    assert "+" in text
    for metric, change, expected in (
        ("ndcg@k", -0.034, "−3.4 points (confirmed)"),
        ("returned_n", 1.5, "+1.5 (confirmed)"),
    ):
        one = {"metric": metric, "change": change, "worse": True, "stage": "confirmed"}
        assert told.moved({"moved": [one]})[0].endswith(expected)


def test_many_cases_a_little_worse():
    """Where no case is lost for sure, the sentence says so and how often chance alone does as much."""
    found = {**after(1), "lost": [], "gained": []}
    odds = "by chance alone at most once in 2,000 times"
    assert told.evidence(found) == f"No case turned for sure, but many went down a little ({odds})."


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (3e-15, "at most once in 1,000,000 times"), (0.0, "at most once in 1,000,000 times"),
        (0.0005, "at most once in 2,000 times"), (0.0015, "at most once in 600 times"),
        (0.0123, "1 time in 100"), (0.67, "67 times in 100"), (1.0, "100 times in 100"),
    ],
)  # fmt: skip
def test_a_p_value_without_statistics(p: float, said: str) -> None:
    """What chance alone does is told as times out of many, never surer than the p-value is."""
    assert told.chance(p) == f"by chance alone {said}"


def test_how_sure_a_change_is() -> None:
    """Looks, trials and what chance says of the last look are one sentence; at rest there is none."""
    found = after(2)
    last = "what the last one found comes by chance alone at most once in 2,000 times."
    assert told.how_sure(found) == f"Asked three times, 7 trials in all; {last}"
    assert told.how_sure({**found, "verdict": "unchanged", "stage": ""}) == ""
