"""What channels have come to, and how often each was told what was so, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from store import queries, writes
from store.alert_life import Facts, Incident, Step, advance, judge
from store.database import Database
from store.queries import Judged
from store.sightings import Key, Sighting
from store.writes import NewDelivery

LONG_AGO = datetime.now(UTC) - timedelta(days=90)


def to_both(incident: Incident, step: Step, step_id: int) -> list[NewDelivery]:
    return [NewDelivery(f"step {step_id} channel {name}", name, "alert", {}) for name in ("team", "ops")]


def opened(db: Database, kind: str = "regression", subject: str = "", drill: bool = False) -> int:
    seen = [Sighting(Key(kind, "golden", "keyword", subject), "sure", 0.1)]
    facts = Facts(datetime.now(UTC), drill=drill)
    turned = writes.turn_alerts(db, lambda known: advance([], seen, facts), to_both)
    assert turned[0].incident.id is not None
    return turned[0].incident.id


def sent(db: Database, channel: str) -> None:
    claim = writes.claim_delivery(db, channel, "sender")
    assert claim is not None
    writes.mark_sent(db, claim, 200)


def test_what_a_channel_has_come_to(db: Database) -> None:
    """Sent, waiting, given up, and off with its reason; a channel that nothing was told is there too."""
    for metric in ("recall_ms", "settle_ms", "plant_ms"):
        opened(db, "slower", metric)
    sent(db, "team")
    refused = writes.claim_delivery(db, "team", "sender")
    assert refused is not None
    writes.give_up(db, refused, 500, "it is down")
    gone = writes.claim_delivery(db, "ops", "sender")
    assert gone is not None
    writes.disable_channel(db, gone, 404, "no such hook", "0f3a")
    team, ops, quiet = queries.channel_rows(db, ["team", "ops", "quiet"], LONG_AGO)
    assert (team.sent, team.waiting, team.failed, team.last_error) == (1, 1, 1, "it is down")
    assert (team.last_sent is not None, team.disabled_at) == (True, None)
    assert (ops.sent, ops.waiting, ops.reason) == (0, 3, "no such hook")
    assert ops.disabled_at is not None
    assert quiet[1:] == (0, None, 0, 0, None, None, None, None)


def test_what_went_well_since_is_no_trouble(db: Database) -> None:
    """A channel is not said to fail for what was refused before its last message arrived, nor for what went
    out in a digest."""
    for metric in ("recall_ms", "settle_ms", "plant_ms"):
        opened(db, "slower", metric)
    refused = writes.claim_delivery(db, "team", "sender")
    assert refused is not None
    writes.give_up(db, refused, 500, "it is down")
    sent(db, "team")
    waiting = queries.waiting(db, "ops")
    digest = writes.NewDelivery("digest", "ops", "digest", {})
    assert writes.fold(db, digest, waiting[-1].id, len(waiting))
    team, ops = queries.channel_rows(db, ["team", "ops"], LONG_AGO)
    assert (team.failed, team.last_error, ops.last_error) == (1, None, None)
    late = writes.claim_delivery(db, "team", "sender")
    assert late is not None
    writes.put_off(db, late, 60, 503, "it is busy")
    assert queries.channel_rows(db, ["team"], LONG_AGO)[0].last_error == "it is busy"


def test_what_people_made_of_what_each_was_told(db: Database) -> None:
    """Of the alarms that a channel was sent, each once: real, noise, and not judged; drills, improvements and
    what never arrived left out."""
    first, second = opened(db), opened(db, "slower", "recall_ms")
    opened(db, "slower", "settle_ms")
    opened(db, "improvement")
    opened(db, "leak", drill=True)
    for _ in range(5):
        sent(db, "team")
    sent(db, "ops")
    writes.act_on_alert(db, first, lambda it: judge(it, "real", "ann"))
    writes.act_on_alert(db, second, lambda it: judge(it, "noise", "ann", "the machine"))
    found = queries.judged_by_channel(db, LONG_AGO)
    assert found == {"team": Judged(1, 1, 1), "ops": Judged(1, 0, 0)}
    assert queries.judged_by_channel(db, datetime.now(UTC) + timedelta(days=1)) == {}
    waiting = queries.waiting(db, "ops")
    assert writes.fold(db, NewDelivery("digest", "ops", "digest", {}), waiting[-1].id, len(waiting))
    assert queries.judged_by_channel(db, LONG_AGO)["ops"] == Judged(1, 1, 1), "a digest tells them too"
