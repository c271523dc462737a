"""Who hears what of an alert."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from collectors.message import headline
from collectors.routing import daily_lines, route
from store import alert_budget
from store.alert_budget import CONFIRMING_LEVEL, FIRST_LEVEL, Watched, budgets
from store.alert_life import Incident, Step
from store.alert_messages import thawed
from store.sections import AlertsSection, ChannelSection
from store.stats.change import LEVELS
from store.writes import NewDelivery
from tests.collectors.incidents import AT, VERDICT, incident

ALERTS = AlertsSection(base_url="https://memtrend.example.org")


def channel(**given: Any) -> ChannelSection:
    return ChannelSection.model_validate({"type": "slack", "url": "https://hooks.example/x", **given})


def heard(section: ChannelSection, it: Incident, action: str) -> NewDelivery | None:
    step = Step(action)  # type: ignore[arg-type]
    return next(iter(route({"team": section}, ALERTS)(it, step, 40)), None)


@pytest.mark.parametrize("action", ["opened", "reopened", "grew"])
def test_what_is_new_is_told(action: str) -> None:
    """What opens, and what falls further, is told under a key that names alert, step and channel."""
    told = heard(channel(), incident(id=12), action)
    assert told is not None
    assert (told.key, told.kind, told.follows) == ("alert 12 step 40 channel team", "alert", False)
    assert told.payload["urls"]["open"] == "https://memtrend.example.org/alert?alert=12"


@pytest.mark.parametrize("action", ["resolved", "retracted", "intended", "acknowledged", "died"])
def test_what_ends_follows(action: str) -> None:
    """The end of an alert, and that somebody has it, is told only where the alert was told before."""
    told = heard(channel(owners=["others"], severity="critical"), incident(id=12), action)
    assert told is not None
    assert told.follows


@pytest.mark.parametrize("action", ["joined", "judged", "muted"])
def test_what_concerns_nobody_is_not_told(action: str) -> None:
    """Another signal of the same cause, a judgement and a mute are no messages."""
    assert heard(channel(), incident(), action) is None


@pytest.mark.parametrize(
    ("given", "hears"),
    [
        ({}, True),
        ({"owners": ["search-team", "x"]}, True),
        ({"owners": ["x"]}, False),
        ({"tags": ["temporal"]}, True),
        ({"tags": ["other"]}, False),
        ({"kinds": ["regression"]}, True),
        ({"kinds": ["failing"]}, False),
        ({"severity": "high"}, True),
        ({"severity": "critical"}, False),
        ({"owners": ["search-team"], "tags": ["other"]}, False),
    ],
)
def test_a_channel_hears_what_it_asks_for(given: dict[str, Any], hears: bool) -> None:
    """Owners, tags, kinds and severity each narrow a channel, all of them together; and what it was told of
    is told on, whatever has become of that."""
    told = heard(channel(**given), incident(), "opened")
    assert told is not None
    assert told.follows is not hears


def test_suspicions_are_asked_for() -> None:
    """A suspicion is told only to a channel that wants suspicions, and is named one."""
    suspected = incident(state="suspected", told_at=None)
    assert heard(channel(), suspected, "suspected") is None
    told = heard(channel(suspicions=True), suspected, "suspected")
    assert told is not None
    assert (told.payload["action"], told.payload["state"]) == ("suspected", "suspected")
    assert heard(channel(suspicions=True, severity="critical"), suspected, "suspected") is None


def test_a_suspicion_that_is_not_looked_at_again_is_told_who_asked() -> None:
    """It would cost too much: who asked for suspicions hears of it and why it stays one, and nobody else."""
    content = {**VERDICT, "stage": "suspicion", "untaken": "asking again would cost about $9.00"}
    left = incident(state="suspicion", told_at=None, content=content)
    assert heard(channel(), left, "untaken") is None
    told = heard(channel(suspicions=True), left, "untaken")
    assert told is not None
    assert told.kind == "alert"
    assert "Asking again would cost about $9.00." in told.payload["evidence"]
    assert headline(thawed(told.payload)).startswith("Suspicion, not looked at again: ")


def test_a_mute_is_silence() -> None:
    """Of a muted alert nothing is told but its end, where it was told that it began; once it speaks again,
    only that it is open still."""
    muted = incident(muted_until=AT)
    assert all(heard(channel(), muted, action) is None for action in ("opened", "grew", "acknowledged"))
    for action in ("resolved", "retracted", "intended"):
        end = heard(channel(), muted, action)
        assert end is not None
        assert end.follows
    told = heard(channel(), incident(), "unmuted")
    assert told is not None
    assert not told.follows
    assert heard(channel(), incident(state="acknowledged"), "unmuted") is None


def test_drills_go_where_drills_go() -> None:
    """A drill reaches every channel for drills whatever its filters, and no other, up to its end."""
    drill = incident(drill=True)
    told = heard(channel(drills=True, owners=["nobody"], severity="critical"), drill, "opened")
    assert told is not None
    assert (told.kind, told.urgent, told.payload["drill"]) == ("drill", True, True)
    for action in ("opened", "resolved", "acknowledged", "suspected", "unmuted"):
        assert heard(channel(suspicions=True), drill, action) is None


def test_critical_waits_for_no_rate() -> None:
    """A lost critical case is urgent, what is merely high is not."""
    content = {"looks": [{"trials": 4}]}
    critical = heard(channel(), incident(kind="critical", content=content), "opened")
    high = heard(channel(), incident(), "opened")
    assert critical is not None
    assert high is not None
    assert (critical.urgent, high.urgent) == (True, False)


def test_a_daily_line_is_of_what_nobody_has() -> None:
    """Once a day and channel: what is open and asked for, not what is acknowledged, muted or a drill."""
    day = datetime(2026, 11, 30, tzinfo=UTC).date()
    quiet = [incident(state="acknowledged"), incident(muted_until=AT), incident(drill=True)]
    sections = {"team": channel(), "others": channel(owners=["x"])}
    (line,) = daily_lines(sections, ALERTS, [*quiet, incident(id=12), incident(id=13)], day)
    assert (line.key, line.channel, line.kind) == ("daily 2026-11-30 channel team", "team", "daily")
    assert [one["name"].split(":")[0] for one in line.payload["listed"]] == ["Alert 12", "Alert 13"]
    assert daily_lines(sections, ALERTS, quiet, day) == []
    assert daily_lines(sections, AlertsSection(daily=False), [incident()], day) == []


# Budgets


def test_the_levels_are_those_of_the_test() -> None:
    """The accounting is of the levels that the change test works with."""
    assert LEVELS[:2] == (FIRST_LEVEL, CONFIRMING_LEVEL)


def test_thirty_pairs_keep_a_budget_of_one() -> None:
    """Thirty pairs every night stay within one false alarm a month; two hundred do not, and it is said what
    would."""
    pairs = [Watched("golden", f"b{n}", "a" if n % 2 else "b", 30) for n in range(200)]
    few, many, own, deaf = (
        *budgets({"team": channel()}, pairs[:30]),
        *budgets(
            {"team": channel(), "a": channel(owners=["a"]), "critical": channel(severity="critical")}, pairs
        ),
    )
    assert few.kept
    assert (few.pairs, few.level) == (30, FIRST_LEVEL)
    assert not many.kept
    assert many.expected == pytest.approx(3.0)
    assert many.level == pytest.approx(1 / 60)
    assert "3 false alarms a month" in alert_budget.told(many)
    assert "confirm.level = 0.017" in alert_budget.told(many)
    (kept,) = budgets({"team": channel()}, [pair._replace(level=many.level) for pair in pairs])
    assert kept.expected == pytest.approx(1.0)
    assert own.pairs == 100
    assert (deaf.expected, deaf.kept) == (0.0, True)
