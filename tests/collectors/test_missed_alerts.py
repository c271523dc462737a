"""Alerts of schedules that did not run."""

from datetime import UTC, datetime, timedelta

from collectors.configured import configured
from collectors.detection import detect_missed
from store import alert_words, queries, writes
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


def test_a_schedule_that_goes_on_missing_is_told_once(db, home):
    """However many of its fires are missed, until one is run: that it does not run is one matter."""
    of, now = configured(), datetime.now(UTC)
    writes.record_schedule(db, "nightly", now + timedelta(days=1), True)
    told = []
    for hour in range(12):
        expect(db, "nightly", now + timedelta(hours=hour))
        turned = detect_missed(db, of, now + timedelta(hours=hour + 0.9))
        told += [step.action for one in turned for step in one.steps]
    assert told == ["opened"]
    [alert] = queries.alerts(db)
    assert "should have run 12 times" in alert_words.evidence(alert.incident)
