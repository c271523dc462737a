"""What a schedule may say, and what is refused with the words to write instead."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from store.sections import ScheduleSection


def section(**keys: Any) -> ScheduleSection:
    return ScheduleSection.model_validate({"cron": "0 3 * * *", "suites": ["golden"], **keys})


def test_what_is_left_out() -> None:
    """A cron line and suites are enough: all backends, once, whole, in UTC, made up for once, at any hour."""
    plain = section()
    assert (plain.backends, plain.trials, plain.subset, plain.timezone) == (["*"], 1, None, "UTC")
    assert (plain.catch_up, plain.window, plain.jitter, plain.enabled) == ("once", None, "0s", True)


@pytest.mark.parametrize(
    ("subset", "told"),
    [(20, "20"), ({"cases": 20}, "20"), ({"share": 0.2}, "20%"), ({"share": 0.125}, "12.5%")],
)
def test_a_subset_is_a_number_or_a_share(subset: Any, told: str) -> None:
    """A number is so many cases, and a share is one of all cases."""
    assert str(section(subset=subset).subset) == told


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"cron": None}, "needs either cron"),
        ({"every": "6h"}, "needs either cron"),
        ({"cron": None, "every": "30s"}, "should be 1m at least"),
        ({"cron": None, "every": "0h"}, "should be 1m at least"),
        ({"cron": None, "every": "6 hours"}, "should be a number and a unit"),
        ({"cron": None, "every": "6h", "timezone": "Europe/Berlin"}, "timezone goes with cron"),
        ({"cron": None, "every": "1h", "jitter": "1h"}, "every should be longer than jitter"),
        ({"timezone": "Berlin"}, "a name of the tz database"),
        ({"timezone": "../etc/passwd"}, "a name of the tz database"),
        ({"window": "10m", "jitter": "10m"}, "window should be longer than jitter"),
        ({"catch_up": "twice"}, "'none' or 'once'"),
        ({"subset": 0}, "greater than or equal to 1"),
        ({"subset": {"share": 1}}, "less than 1"),
        ({"subset": {"share": 0.2, "cases": 3}}, "a number of cases, or a share of them"),
        ({"subset": {}}, "a number of cases, or a share of them"),
        ({"subset": True}, "subset"),
        ({"subset": 5, "kind": "calibration"}, "leave subset out"),
        ({"trials": 2, "kind": "calibration"}, "leave trials out"),
        ({"window": "later"}, "should be a number and a unit"),
    ],
)
def test_what_does_not_fit_is_refused(keys: dict[str, Any], part: str) -> None:
    """Each contradiction is refused with what to write instead."""
    with pytest.raises(ValidationError, match=part):
        section(**keys)
