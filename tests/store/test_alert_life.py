"""The life of alerts, from what runs show, what people do, and what time brings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from store.alert_life import (
    Incident,
    NotPossible,
    acknowledge,
    close,
    judge,
    mute,
    settled,
    unlooked,
    unmute,
)
from store.sightings import Key, Standing
from tests.store.alert_history import LEAK, LEAKED, START, History, sighting


@pytest.fixture
def history() -> History:
    return History()


@pytest.fixture
def opened(history: History) -> History:
    """One regression that was told."""
    history.sees(sighting("sure"))
    return history


# The looks


def test_a_suspicion_that_dies(history: History) -> None:
    """The second look at the same run finds all in order: it is kept as one that came to nothing."""
    assert history.sees(sighting("suspicion")) == []
    assert history.states == ["suspicion"]
    assert history.sees(sighting("clear"), night=1) == ["died"]
    assert history.states == ["died"]
    assert history.alerts[0].told_at is None


def test_a_suspicion_that_costs_too_much_to_look_at(history: History) -> None:
    """It stays a suspicion, and says so once, however many nights it lasts; a look that is taken after all
    is told as ever."""
    left = sighting("suspicion", content={"untaken": "asking again would cost about $9.00"})
    assert [history.sees(left) for _ in range(3)] == [["untaken"], [], []]
    assert history.states == ["suspicion"]
    assert history.sees(sighting("suspected")) == ["suspected"]
    assert history.sees(left) == []
    assert history.states == ["suspected"]


def test_three_looks_make_an_alarm(history: History) -> None:
    """Suspicion, suspected, alarm: one alert, told once, when it is sure."""
    history.sees(sighting("suspicion"))
    assert history.sees(sighting("suspected"), night=1) == ["suspected"]
    assert history.alerts[0].told_at is None
    assert history.sees(sighting("sure"), night=1) == ["opened"]
    assert history.states == ["open"]


def test_a_third_look_that_takes_it_back(history: History) -> None:
    """What two looks suspected and the third does not find was no alarm."""
    history.sees(sighting("suspected"))
    assert history.sees(sighting("clear"), night=1) == ["died"]


def test_an_alarm_that_a_look_takes_back_is_retracted(history: History) -> None:
    """A critical case is told after four trials; when a later look finds it, that is told too."""
    lost = Key("critical", "golden", "mem0")
    history.sees(sighting("sure", lost))
    assert history.sees(sighting("clear", lost), night=1) == ["retracted"]


def test_what_is_taken_back_in_part_is_resolved(history: History) -> None:
    """An alarm of which one thing was none, and another one was and is mended, was an alarm."""
    lost = Key("critical", "golden", "mem0")
    history.sees(sighting("sure", lost), sighting("suspected"))
    history.sees(sighting("clear", lost), sighting("sure"), night=1)
    history.sees(sighting("clear"))
    assert history.sees(sighting("clear")) == ["resolved"]


def test_a_suspicion_of_the_next_night_does_not_make_it_less(history: History) -> None:
    """What was suspected in two looks stays so while the next night waits for looks; a good one ends it."""
    history.sees(sighting("suspected"))
    assert history.sees(sighting("suspicion")) == []
    assert history.states == ["suspected"]
    assert history.sees(sighting("clear")) == ["died"]


def test_a_look_is_no_good_run(opened: History) -> None:
    """The looks at one night are not counted as nights: two good runs are two nights."""
    opened.sees(sighting("clear"))
    assert opened.sees(sighting("clear"), night=2) == []
    assert opened.states == ["open"]


# Its ends


def test_two_good_runs_resolve(opened: History) -> None:
    """In a row: a bad one between begins the count anew."""
    opened.sees(sighting("clear"))
    opened.sees(sighting("sure"))
    assert opened.sees(sighting("clear")) == []
    assert opened.sees(sighting("clear")) == ["resolved"]
    assert opened.states == ["resolved"]


def test_runs_that_say_nothing_resolve_nothing(opened: History) -> None:
    """Silence is no good run."""
    for _ in range(5):
        assert opened.sees(sighting("clear", Key("failing", "golden", "mem0"))) == []
    assert opened.states == ["open"]


def test_thirty_nights_of_one_step_are_one_alert(history: History) -> None:
    """However often it is confirmed: one alert, told once, while it does not fall further."""
    for night in range(30):
        history.sees(sighting("suspicion", depth=0.1 + 0.001 * (night % 3)))
        history.sees(sighting("suspected", depth=0.1), night=history.night)
        history.sees(sighting("sure", depth=0.1 + 0.001 * (night % 5)), night=history.night)
    assert history.states == ["open"]
    assert history.steps == [(1, "suspected"), (1, "opened")]


def test_it_grows_by_a_step_of_its_kind(opened: History) -> None:
    """A further drop is told once, counted from what was told last; one less deep is not."""
    assert opened.sees(sighting("sure", depth=0.115)) == []
    assert opened.sees(sighting("sure", depth=0.15)) == ["grew"]
    assert opened.sees(sighting("sure", depth=0.16)) == []
    assert opened.sees(sighting("sure", depth=0.11)) == []
    assert opened.sees(sighting("sure", depth=0.16)) == []


def test_a_further_drop_that_is_not_sure_waits(opened: History) -> None:
    """What fell further is told when its own looks are through: until then the alert is as it was."""
    assert opened.sees(sighting("suspicion", depth=0.3)) == []
    assert opened.sees(sighting("sure", depth=0.3), night=2) == ["grew"]


def test_a_good_night_that_began_as_a_suspicion(opened: History) -> None:
    """What its second look finds in order is a good night of an alarm that nights before it stand for."""
    opened.sees(sighting("suspicion"))
    assert opened.sees(sighting("clear"), night=2) == []
    assert opened.states == ["open"]
    assert opened.sees(sighting("clear")) == ["resolved"]


def test_a_leak_whose_evidence_fades_is_retracted(history: History) -> None:
    """The level stayed, but the series does not show the step any more: it was none."""
    history.sees(sighting("sure", LEAK, content=LEAKED))
    assert history.sees(sighting("clear", LEAK, content={"now": 0.81})) == ["retracted"]


def test_a_leak_whose_level_came_back_is_resolved(history: History) -> None:
    """Two nights at the old level: it was mended."""
    history.sees(sighting("sure", LEAK, content=LEAKED))
    assert history.sees(sighting("clear", LEAK, content={"now": 0.89})) == []
    assert history.sees(sighting("clear", LEAK, content={"now": 0.9})) == ["resolved"]


def test_an_improvement_is_for_information(history: History) -> None:
    """It is an alert of its own, of the least severity, and never part of what got worse."""
    better = Key("improvement", "golden", "mem0")
    worse = Key("slower", "golden", "mem0", "recall_ms")
    history.sees(sighting("sure", better), sighting("sure", worse))
    assert sorted(one.kind.severity for one in history.alerts) == ["info", "normal"]


def test_what_is_over_never_turns_again(opened: History) -> None:
    """The same fall after it was resolved is another alert."""
    opened.sees(sighting("clear"))
    opened.sees(sighting("clear"))
    opened.sees(sighting("sure"))
    assert opened.states == ["resolved", "open"]


# One cause, one alert


def test_one_run_is_one_alert(history: History) -> None:
    """All that one run shows, from its critical case to its tokens, is told as one, named after its worst."""
    keys = [
        *(Key(kind, "golden", "mem0") for kind in ("critical", "regression")),
        Key("threshold", "golden", "mem0", "pass"),
        Key("dearer", "golden", "mem0", "returned_tokens"),
    ]
    assert history.sees(*(sighting("sure", key) for key in keys)) == ["opened"]
    (alert,) = history.alerts
    assert (alert.kind.name, len(alert.signals)) == ("critical", 4)


def test_one_fall_of_a_series_is_one_alert(opened: History) -> None:
    """A bar that breaks, or a leak that shows, nights after the step joins it without a message; a critical
    case that goes makes it worse than people were told of."""
    assert opened.sees(sighting("sure"), sighting("sure", Key("threshold", "golden", "mem0", "pass"))) == [
        "joined"
    ]
    assert opened.sees(sighting("sure", LEAK, content=LEAKED)) == ["joined"]
    assert opened.sees(sighting("sure", Key("critical", "golden", "mem0"))) == ["joined", "grew"]
    assert opened.states == ["open"]
    assert opened.sees(sighting("sure", Key("regression", "golden", "other"))) == ["opened"]


def test_what_may_be_names_no_alert(history: History) -> None:
    """A critical case that is lost at first sight makes no open alert critical; once sure, it does."""
    lost = Key("critical", "golden", "mem0")
    history.sees(sighting("sure", LEAK, content=LEAKED))
    assert history.sees(sighting("suspicion", lost)) == ["joined"]
    assert one(history).kind.name == "leak"
    assert history.sees(sighting("sure", lost), night=2) == ["grew"]
    assert one(history).kind.name == "critical"


def test_what_may_have_been_names_no_alert_that_is_over(history: History) -> None:
    """What was told and is mended is told by its own name, not by that of a suspicion that came to
    nothing."""
    lost = Key("critical", "golden", "mem0")
    history.sees(sighting("sure", LEAK, content=LEAKED))
    history.sees(sighting("suspicion", lost))
    history.sees(sighting("clear", lost), sighting("clear", LEAK, content={"now": 0.9}))
    assert history.sees(sighting("clear", LEAK, content={"now": 0.9})) == ["resolved"]
    assert one(history).kind.name == "leak"


def test_it_becomes_more_severe(history: History) -> None:
    """What was suspected when the alert was opened, and is worse than it, is told when it is sure."""
    lost, slower = Key("critical", "golden", "mem0"), Key("slower", "golden", "mem0", "recall_ms")
    assert history.sees(sighting("suspected", lost), sighting("sure", slower)) == ["opened"]
    assert one(history).kind.name == "slower"
    assert history.sees(sighting("sure", lost), night=1) == ["grew"]


def test_a_shared_cause_over_two_backends_is_one_alert(history: History) -> None:
    """Where controls fell too, in one day, the cause is one."""
    other = Key("regression", "golden", "zep")
    history.sees(sighting("sure"), shared=True)
    assert history.sees(sighting("sure", other), beside=True, shared=True) == ["joined"]
    assert len(history.alerts) == 1


def test_one_suspect_over_two_backends_is_one_alert_within_a_day(history: History) -> None:
    """What changed in the same way under both; two days later, or of another suspect, it is another alert."""
    of = {name: Key("regression", "golden", name) for name in ("mem0", "zep", "letta", "late")}
    history.sees(sighting("sure", of["mem0"]), suspect="torch: 1 -> 2")
    history.sees(sighting("sure", of["zep"]), beside=True, suspect="torch: 1 -> 2")
    history.sees(sighting("sure", of["letta"]), beside=True, suspect="numpy: 1 -> 2")
    assert [len(one.signals) for one in history.alerts] == [2, 1]
    history.night += 2
    history.sees(sighting("sure", of["late"]), suspect="torch: 1 -> 2")
    assert len(history.alerts) == 3


def test_without_a_suspect_nothing_is_put_together(history: History) -> None:
    """That nothing is known to have changed is no cause in common."""
    history.sees(sighting("sure"))
    history.sees(sighting("sure", Key("regression", "golden", "zep")))
    assert len(history.alerts) == 2


def test_a_failing_backend_is_one_alert_and_silences_its_metrics(history: History) -> None:
    """All of its suites that fail are one alert; what another of its suites measures meanwhile joins it
    without a message, and is told should it stand when the backend is well again."""
    failing = [Key("failing", suite, "mem0") for suite in ("golden", "own")]
    assert history.sees(sighting("sure", failing[0], 1.0)) == ["opened"]
    assert history.sees(sighting("sure", failing[1], 1.0)) == ["joined"]
    slower = Key("slower", "third", "mem0", "recall_ms")
    assert history.sees(sighting("sure", slower, 0.5)) == ["joined"]
    assert history.sees(sighting("sure", slower, 0.5)) == []
    history.sees(*(sighting("clear", key) for key in failing))
    assert history.sees(*(sighting("clear", key) for key in failing)) == ["grew"]
    (alert,) = history.alerts
    assert (alert.state, alert.kind.name) == ("open", "slower")
    assert history.sees(sighting("sure", slower, 0.5)) == []


def test_what_is_more_severe_is_not_silenced(history: History) -> None:
    """A suite that cannot be measured for weeks does not hide that another one lost a critical case."""
    history.sees(sighting("sure", Key("failing", "own", "mem0"), 1.0))
    assert history.sees(sighting("sure", Key("critical", "golden", "mem0"))) == ["opened"]
    assert [it.kind.name for it in history.alerts] == ["failing", "critical"]


def test_another_backend_is_not_silenced(history: History) -> None:
    """That one is down says nothing of the next."""
    history.sees(sighting("sure", Key("failing", "golden", "mem0"), 1.0))
    assert history.sees(sighting("sure", Key("regression", "golden", "zep"))) == ["opened"]


def test_all_schedules_missed_are_one_alert(history: History) -> None:
    """A collector that was down missed them all; the first run of each ends it."""
    keys = [Key("missed", "", "", name) for name in ("nightly", "hourly", "weekly")]
    assert history.sees(*(sighting("sure", key, 1.0) for key in keys)) == ["opened"]
    assert history.sees(sighting("sure", Key("missed", "", "", "new"), 1.0)) == ["joined"]
    assert history.sees(*(sighting("clear", key) for key in keys)) == []
    assert history.sees(sighting("clear", Key("missed", "", "", "new"))) == ["resolved"]
    assert len(history.alerts) == 1


def test_drills_and_alarms_do_not_mix(opened: History) -> None:
    """A drill of a series whose alarm is open is an alert of its own, marked as a drill."""
    assert opened.sees(sighting("sure"), drill=True) == ["opened"]
    assert [one.drill for one in opened.alerts] == [False, True]


def test_what_is_told_beside_it_is_of_the_bad_run(history: History) -> None:
    """A run that is good in one thing and bad in another does not take the one's losses for the other's."""
    slower = Key("slower", "golden", "mem0", "recall_ms")
    history.sees(sighting("sure"), context={"cases": 40}, suspects=[{"sentence": "a"}], last_good_run_id=3)
    history.sees(sighting("clear"), sighting("suspicion", slower), context={"cases": 1})
    first = history.alerts[0]
    assert (first.context, first.suspects, first.last_good_run_id) == ({"cases": 40}, ({"sentence": "a"},), 3)


def test_tags_are_those_of_lost_cases(history: History) -> None:
    """By which an alert finds its channel."""
    tags = {"a": ["keys", "odd"], "b": ["keys"], "c": ["fine"]}
    history.sees(sighting("sure", cases=("a", "b")), tags=tags)
    assert history.alerts[0].tags == ("keys", "odd")


# What people do


def one(history: History) -> Incident:
    return history.alerts[0]

    """Who has it is refused a second time, so that no channel hears it twice; another may take it over."""


def test_an_acknowledged_alert_holds_until_it_falls_further(opened: History) -> None:
    """The same fall is no reason to tell it again; a further one opens it anew, for whoever may have it."""
    opened.keep([acknowledge(one(opened), "ann", "mine")])
    assert (one(opened).state, one(opened).acknowledged_by) == ("acknowledged", "ann")
    assert opened.sees(sighting("sure")) == []
    assert opened.sees(sighting("sure", depth=0.2)) == ["reopened"]
    assert (one(opened).state, one(opened).acknowledged_by) == ("open", None)


def test_who_has_an_alert_takes_it_once(opened: History) -> None:
    """Whoever has it is refused a second time, so that no channel hears it twice; another may take it."""
    opened.keep([acknowledge(one(opened), "ann")])
    with pytest.raises(NotPossible, match="ann has it already"):
        acknowledge(one(opened), "ann", "again")
    assert acknowledge(one(opened), "ben").incident.acknowledged_by == "ben"


def test_an_acknowledged_alert_is_resolved_like_any_other(opened: History) -> None:
    """Nobody has to come back to it."""
    opened.keep([acknowledge(one(opened), "ann")])
    opened.sees(sighting("clear"))
    assert opened.sees(sighting("clear")) == ["resolved"]


@pytest.mark.parametrize("standing", ["suspicion", "suspected"])
def test_what_nobody_was_told_of_is_not_acknowledged(history: History, standing: Standing) -> None:
    """Or it would never be told, once it is sure."""
    history.sees(sighting(standing))
    with pytest.raises(NotPossible, match="as yet, of which no alarm was given"):
        acknowledge(one(history), "ann")
    with pytest.raises(NotPossible, match="neither real nor noise"):
        judge(one(history), "noise", "ann", "flaky")


def test_mute(opened: History) -> None:
    """Until a time that lies ahead; it ends by itself, or by a person."""
    until = START + timedelta(days=9)
    opened.keep([mute(one(opened), until, START, "ann", "on leave")])
    assert one(opened).muted_until == until
    opened.keep([unmute(one(opened))])
    assert one(opened).muted_until is None
    with pytest.raises(NotPossible, match="that is past"):
        mute(one(opened), START, START, "ann")


@pytest.mark.parametrize("state", ["resolved", "intended"])
def test_a_person_closes_it_with_a_reason(opened: History, state: Any) -> None:
    """Never without one, and never twice."""
    with pytest.raises(NotPossible, match="say why"):
        close(one(opened), state, "ann", "  ")
    opened.keep([close(one(opened), state, "ann", "the new ranking")])
    assert (one(opened).state, one(opened).standing) == (state, [])
    for act in (
        lambda it: close(it, state, "ann", "again"),
        lambda it: acknowledge(it, "ann"),
        lambda it: mute(it, START + timedelta(days=1), START, "ann"),
    ):
        with pytest.raises(NotPossible, match=f"it is {state} already"):
            act(one(opened))


def test_real_or_noise(opened: History) -> None:
    """Noise needs a reason; either may be said after it is over, and be changed."""
    with pytest.raises(NotPossible, match="say why"):
        judge(one(opened), "noise", "ann")
    opened.keep([judge(one(opened), "real", "ann")])
    opened.sees(sighting("clear"))
    opened.sees(sighting("clear"))
    opened.keep([judge(one(opened), "noise", "ben", "the judge had a mood")])
    assert (one(opened).state, one(opened).judged) == ("resolved", "noise")


def test_a_baseline_that_begins_anew_settles_what_was_held_against_it(history: History) -> None:
    """The series' own alerts, and no other's; a bar that is broken is broken still."""
    bar = Key("threshold", "golden", "mem0", "pass")
    history.sees(sighting("sure"), sighting("sure", Key("slower", "golden", "mem0", "recall_ms")))
    history.sees(sighting("sure", Key("regression", "golden", "zep")))
    first, other = history.alerts
    assert settled(other, "golden", "mem0", "ann", "meant") is None
    turned = settled(first, "golden", "mem0", "ann", "meant")
    assert turned is not None
    assert (turned.incident.state, turned.steps[0].action) == ("intended", "intended")
    history.sees(sighting("sure", bar))
    both = settled(history.alerts[0], "golden", "mem0", "ann", "meant")
    assert both is not None
    assert (both.incident.state, [signal.key for signal in both.incident.standing]) == ("open", [bar])


def test_a_look_that_is_not_taken(history: History) -> None:
    """It stays suspected, with the reason beside it, which goes with the next bad run."""
    history.sees(sighting("suspected"), context={"cases": 40})
    history.keep([unlooked(one(history), "it would cost $9")])
    assert (one(history).state, one(history).context["untaken"]) == ("suspected", "it would cost $9")
    history.sees(sighting("suspected"), context={"cases": 40})
    assert "untaken" not in one(history).context
