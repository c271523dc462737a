"""Schedules over days: a real collector on a clock that runs fast."""

import pytest

from scripts.month import spend
from scripts.month_account import FLAT_MB, Sample, growth


@pytest.mark.timeout(900)
def test_three_days_are_accounted_for(tmp_path):
    """Over three days with the night in which Berlin's clocks are set back, a collector that is away for a
    night and for a day, a backend that is too slow and one that fails, every fire that should have come has
    one row that says what became of it, with the runs that it made, and doctor says the same."""
    month = spend(tmp_path, 3)
    assert month.problems == []
    assert month.expected == {
        **dict.fromkeys(("berlin", "within", "spread", "strict", "flaky"), 3),
        "often": 11,
        "weekly": 1,
        "slow": 5,
    }
    for schedule in ("strict", "within"):
        assert month.states[schedule]["missed"] >= 2, "two nights without a collector"
    assert month.states["berlin"]["done"] + month.states["berlin"]["late"] >= 2
    assert month.states["slow"]["skipped"] >= 1
    assert [sample.day for sample in month.samples] == [1, 2, 3]


@pytest.mark.parametrize("days", [3, 30])
def test_a_collector_that_grows_is_told(days):
    """Memory that a collector goes on taking after a third of the days is told, in few days as in many; what
    it takes while it gets warm is not."""
    warm, end = max(days // 3, 2), 200 + FLAT_MB
    samples = [Sample(1, 100, 1), Sample(warm, 200, 1), Sample(days, end, 1)]
    assert [*growth(samples, days)] == []
    assert "not flat" in "".join(growth([*samples[:2], Sample(days, end + 1, 1)], days))
