"""Alerts of schedules that did not run."""

from datetime import UTC, datetime, timedelta

from collectors.configured import configured
from collectors.detection import detect_missed
from store import queries, writes
from store.alert_life import close
from tests.collectors.collecting import expect


def test_a_missed_run_that_somebody_has_seen_to_is_told_no_more(db, home):
    """A person may close what nobody has made up for yet; the next miss is told anew."""
    of, now = configured(), datetime.now(UTC)
    writes.record_schedule(db, "nightly", now + timedelta(days=1), True)

    def told():
        return [step.action for one in detect_missed(db, of, now) for step in one.steps]

    expect(db, "nightly", now - timedelta(hours=3))
    assert told() == ["opened"]
    assert told() == []
    [alert] = queries.alerts(db)
    writes.act_on_alert(db, alert.id, lambda it: close(it, "resolved", "ann", "a holiday"), writes.nobody)
    assert told() == []
    now += timedelta(hours=3)
    expect(db, "nightly", now - timedelta(hours=1))
    assert told() == ["opened"]
