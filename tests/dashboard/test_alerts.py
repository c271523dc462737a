"""Alerts and Alert over records in every state, as AppTest sees them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from store import queries, writes
from store.alert_life import Facts, advance
from store.database import Database, open_database
from store.sightings import Key, Sighting
from tests.dashboard.alarmed import CHANNELS, Alarmed, many
from tests.dashboard.conftest import Open, Seeded
from tests.dashboard.facts import HOSTILE, HOSTILE_CASE
from tests.dashboard.test_pages import text, title


@pytest.fixture
def url(alarmed: tuple[Path, Alarmed]) -> str:
    return f"sqlite:///{alarmed[0]}"


@pytest.fixture
def ids(alarmed: tuple[Path, Alarmed]) -> Alarmed:
    return alarmed[1]


@pytest.fixture
def copied(alarmed: tuple[Path, Alarmed], tmp_path: Path) -> str:
    """To write to."""
    return f"sqlite:///{shutil.copy(alarmed[0], tmp_path / 'copy.db')}"


@pytest.fixture
def copy(copied: str) -> Iterator[Database]:
    with closing(open_database(copied)) as db:
        yield db


@pytest.fixture
def _channels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memtrend.toml").write_text(CHANNELS)
    monkeypatch.chdir(tmp_path)


def labels(at: AppTest) -> list[str]:
    return [button.label for button in at.button]


# Alerts ---------------------------------------------------------------------------------------------------


def test_a_record_without_alerts(open_page: Open, tmp_path: Path) -> None:
    """Before there was an alert the page says so, what to run, and that nobody would be told."""
    at = open_page("alerts", f"sqlite:///{tmp_path}/new.db")
    assert title(at) == "No alert yet"
    told = text(at)
    for command in ("memtrend up", "memtrend alerts test", "memtrend alerts proof", "[channels.team]"):
        assert command in told
    assert "Alarm never proven" in told


def test_what_is_open(open_page: Open, url: str) -> None:
    """The title counts what is open and what nobody has; each row has evidence, holder and a way in."""
    at = open_page("alerts", url)
    assert title(at) == "Five alerts are open; nobody has taken three of them"
    told = text(at)
    assert "failed in at least 6 of 7 trials." in told
    assert "priya has it" in told
    assert "nobody has it · muted until" in told
    assert labels(at).count("I have it") == 3


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ({"state": "resolved"}, {"resolved"}),
        ({"state": "suspicion"}, {"suspicion"}),
        ({"kind": "improvement"}, {"intended"}),
        ({"kind": "missed"}, {"resolved"}),
        ({"backend": "hybrid"}, {"suspicion", "intended"}),
        ({"suite": "contract", "state": "retracted"}, {"retracted"}),
        ({"owner": "nobody of that name"},
         {"resolved", "retracted", "intended", "died", "suspicion", "suspected"}),
    ],
)  # fmt: skip
def test_filters_come_from_the_address(
    chosen: dict[str, str], shown: set[str], open_page: Open, url: str, ids: Alarmed
) -> None:
    """What the address names is what the tables hold; a name that is none filters nothing."""
    at = open_page("alerts", url, **chosen)
    found = {alert for frame in at.dataframe if "evidence" in frame.value for alert in frame.value["alert"]}
    assert found == {f"A-{getattr(ids, name)}" for name in shown}


def test_a_drill_stands_apart(open_page: Open, url: str, ids: Alarmed) -> None:
    """What a drill raised is told as a drill alone, among no other alerts."""
    frames = [frame.value for frame in open_page("alerts", url).dataframe]
    having = [frame for frame in frames if f"A-{ids.drill}" in list(frame.get("alert", ()))]
    assert all("evidence" not in frame for frame in having)
    assert any("where" in frame for frame in having)


@pytest.mark.usefixtures("_channels")
def test_whether_the_alarms_can_be_trusted(open_page: Open, url: str) -> None:
    """Own precision with its interval, the budget of each channel, what is off and why, the newest proof."""
    at = open_page("alerts", url)
    told = text(at)
    assert "1 of 2 judged alarms were real (9.5 to 90.5 %)" in told
    assert "not judged yet" in told
    assert "Alarm proven" in told
    assert "Channel ops is off since" in told
    assert "HTTP 404: no such hook.] Nobody hears anything through it." in told
    assert "memtrend alerts test ops" in told
    rows = next(frame.value for frame in at.dataframe if "budget" in frame.value).set_index("channel")
    assert rows.loc["team", "budget"].endswith("of 3 false alarms in 90 days")
    assert list(rows["state"].map(lambda state: state[0])) == ["waiting", "off"]
    assert "Channel team: " in told
    assert "false alarms a month to be expected of" in told


@pytest.mark.usefixtures("_channels")
def test_a_test_is_sent_by_the_collector(open_page: Open, copied: str, copy: Database) -> None:
    """The button puts a real message into the outbox, before all that waits; of a channel that is off it says
    so; and where pages may not write there is none."""
    at = open_page("alerts", copied)
    assert "Hold it" not in labels(at)  # for want of a channel for drills
    at.selectbox(key="test-channel").set_value("ops").run()
    at.button(key="send-test").click().run()
    assert "ops is off" in at.toast[0].value
    at.selectbox(key="test-channel").set_value("team").run()
    at.button(key="send-test").click().run()
    (test,) = [row for row in queries.deliveries(copy) if row.kind == "test"]
    assert (test.channel, test.state, test.payload["action"]) == ("team", "queued", "test")
    claim = writes.claim_delivery(copy, "team", "sender", urgent=True)
    assert claim is not None
    assert claim.key == test.key
    config.set_option("server.address", "0.0.0.0")
    assert "Send it" not in labels(open_page("alerts", copied))


def test_a_drill_is_asked_for(
    open_page: Open, copied: str, copy: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button asks the collector for a drill of what the schedule of drills names."""
    schedule = '[schedules.drill]\nkind = "proof"\nevery = "7d"\nsuites = ["golden"]\nbackends = ["dense"]\n'
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memtrend.toml").write_text(CHANNELS + "drills = true\n" + schedule)
    at = open_page("alerts", copied)
    at.button(key="hold-drill").click().run()
    (asked,) = queries.requests(copy, ["queued"])
    assert (asked.kind, asked.payload) == ("proof", {"suite": "golden", "backend": "dense"})


def test_two_hundred_alerts(open_page: Open, copied: str, copy: Database) -> None:
    """Beyond what can be read as rows, alerts are in a table; none is left out."""
    many(copy, 200)
    at = open_page("alerts", copied)
    assert title(at).startswith("205 alerts are open; nobody has taken 203 of them")
    more = next(element for element in at.dataframe if len(element.value) > 100)
    assert len(more.value) == 205 - 12


# Alert ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["", "0", "-1", "٣", "x", "99999", "9" * 400])
def test_no_such_alert(asked: str, open_page: Open, url: str) -> None:
    """Whatever stands for an alert in the address, the page says that there is none."""
    assert title(open_page("alert", url, alert=asked)) == "There is no such alert"


@pytest.mark.parametrize(
    ("state", "expected", "buttons"),
    [
        ("open", "mem0 on golden got worse when mem0ai went from 2.1.0 to 2.2.1", 5),
        ("acknowledged", "notes on golden loses a little every week", 4),
        ("failing", "notes on contract could not be measured", 4),
        ("muted", "The index of dense shrinks", 4),
        ("suspicion", "hybrid on golden got slower", 3),
        ("suspected", "keyword on golden: unwanted is beyond its bar", 2),
        ("resolved", "Schedule nightly did not run", 1),
        ("retracted", "dense on contract got worse", 1),
        ("intended", "hybrid on contract got better", 1),
        ("died", "keyword on golden got slower", 0),
        ("drill", "hybrid on contract got worse", 0),
    ],
)
def test_every_state(
    state: str, expected: str, buttons: int, open_page: Open, url: str, ids: Alarmed
) -> None:
    """An alert in each state draws, its title is what is wrong, and it offers what can be done to it: nobody
    has what nobody was told of, and a drill is nobody's."""
    at = open_page("alert", url, alert=str(getattr(ids, state)))
    assert title(at) == expected
    assert len([label for label in labels(at) if label in ACTS]) == buttons
    assert ("a drill, raised on purpose" in text(at)) == (state == "drill")
    assert ("I have it" in labels(at)) == (state in ("open", "failing", "muted"))
    ways = [link.proto.label for link in at.get("page_link")]
    assert ("Trend" in ways) == (state not in ("resolved", "drill")), (
        "of a schedule and a drill there is none"
    )


ACTS = ("I have it", "Mute", "Unmute", "It was meant", "Take it down", "It is over")


def test_the_evidence(open_page: Open, url: str, ids: Alarmed) -> None:
    """Two questions with two answers, suspects in their order with what had changed before last, and the
    story from the first sight on."""
    at = open_page("alert", url, alert=str(ids.open))
    told = text(at)
    assert "Did it change?" in told
    assert "How much worse for questions like these?" in told
    assert "2 stale fact first and 1 stored but not returned" in told
    frames = {tuple(frame.value.columns): frame.value for frame in at.dataframe}
    suspects = frames["rank", "name", "was", "is"]
    assert [rank for (rank,) in suspects["rank"]] == ["suspect", "possible", "unlikely"]
    assert list(frames["at", "what", "run"]["what"]) == [
        "seen first", "suspected: a second look bore it out", "opened"
    ]  # fmt: skip


def test_hostile_text_stays_text(open_page: Open, url: str, ids: Alarmed) -> None:
    """Names and reasons that try to be markup are shown as the characters that they are."""
    at = open_page("alert", url, alert=str(ids.hostile))
    assert HOSTILE_CASE in text(at)
    for element in [*at.markdown, *at.title]:
        assert not element.allow_html if hasattr(element, "allow_html") else True
        assert "<script>" not in element.value
    steps = next(frame.value for frame in at.dataframe if "what" in frame.value and "at" in frame.value)
    assert HOSTILE in steps["what"].iloc[-1]


# Doing ----------------------------------------------------------------------------------------------------


def submit(at: AppTest, label: str, reason: str, key: str) -> AppTest:
    at.text_input(key=key).set_value(reason)
    return next(button for button in at.button if button.label == label).click().run()


def state(db: Database, alert_id: int) -> tuple[str, str | None]:
    row = queries.alert(db, alert_id)
    assert row is not None
    return row.incident.state, row.incident.acknowledged_by


def test_a_link_from_a_message_changes_nothing(
    open_page: Open, copied: str, copy: Database, ids: Alarmed
) -> None:
    """Following the acknowledge link opens the form, and leaves the alert and its story as they were."""
    before = len(queries.alert_steps(copy, ids.open))
    at = open_page("alert", copied, alert=str(ids.open), do="acknowledge")
    assert at.session_state[f"acknowledge-{ids.open}"] is True
    assert state(copy, ids.open) == ("open", None)
    assert len(queries.alert_steps(copy, ids.open)) == before


def test_acknowledge(open_page: Open, copied: str, copy: Database, ids: Alarmed) -> None:
    """I have it takes the alert down as mine with the reason, for the collector to tell the channels."""
    at = open_page("alert", copied, alert=str(ids.open))
    submit(at, "I have it", "looking at it", f"why-acknowledge-{ids.open}")
    assert state(copy, ids.open) == ("acknowledged", "local")
    step = queries.alert_steps(copy, ids.open)[-1]
    assert (step.action, step.author, step.reason) == ("acknowledged", "local", "looking at it")
    told: list[tuple[str, int]] = []

    def route(incident: object, step: object, step_id: int) -> list[writes.NewDelivery]:
        told.append((getattr(step, "action", ""), step_id))
        return []

    writes.route_people(copy, route)  # type: ignore[arg-type]
    assert (step.action, step.id) in told
    told.clear()
    writes.route_people(copy, route)  # type: ignore[arg-type]
    assert told == []


def test_intended_needs_a_reason_and_begins_the_baseline_anew(
    open_page: Open, copied: str, copy: Database, ids: Alarmed
) -> None:
    """Without a reason nothing happens and the page says why; with one the alert is over, and the baseline
    begins with its run."""
    at = open_page("alert", copied, alert=str(ids.open))
    key = f"why-intended-{ids.open}"
    at = submit(at, "It was meant", " ", key)
    assert "say why" in at.toast[0].value
    assert state(copy, ids.open)[0] == "open"
    submit(at, "It was meant", "the new prompt", key)
    assert state(copy, ids.open)[0] == "intended"
    made = queries.baseline_decisions(copy, "golden", "mem0")
    assert [(one.action, one.reason, one.author) for one in made] == [("intended", "the new prompt", "local")]


def test_judging(open_page: Open, copied: str, copy: Database, ids: Alarmed) -> None:
    """Noise needs a reason, and counts against the precision of the alarms."""
    at = open_page("alert", copied, alert=str(ids.open))
    at.radio(key=f"judged-{ids.open}").set_value("noise")
    at = submit(at, "Take it down", "", f"why-judge-{ids.open}")
    assert "noise: say why" in at.toast[0].value.replace("\\", "").replace("\u2060", "")
    at.radio(key=f"judged-{ids.open}").set_value("noise")
    before = queries.judged(copy)
    submit(at, "Take it down", "the provider was slow", f"why-judge-{ids.open}")
    assert queries.judged(copy).noise == before.noise + 1


def test_mute_and_unmute(open_page: Open, copied: str, copy: Database, ids: Alarmed) -> None:
    """Muted for days, heard again at a click; both are in its story."""
    at = open_page("alert", copied, alert=str(ids.failing))
    at.radio(key=f"days-{ids.failing}").set_value("3 days")
    at = submit(at, "Mute", "", f"why-mute-{ids.failing}")
    assert "muted until" in text(at)
    next(button for button in at.button if button.label == "Unmute").click().run()
    assert [step.action for step in queries.alert_steps(copy, ids.failing)][-2:] == ["muted", "unmuted"]


def test_nothing_is_written_where_pages_may_not(open_page: Open, url: str, ids: Alarmed) -> None:
    """Where others reach the pages there are no buttons, but the command that does it."""
    config.set_option("server.address", "0.0.0.0")
    at = open_page("alert", url, alert=str(ids.open))
    assert labels(at) == []
    assert f"memtrend alerts ack {ids.open}" in text(at)
    assert "I have it" not in labels(open_page("alerts", url))


# Elsewhere ------------------------------------------------------------------------------------------------


def test_overview_names_the_worst(open_page: Open, url: str, ids: Alarmed) -> None:
    """Overview has the three worst that are open, and how old the last proof is."""
    told = text(open_page("overview", url))
    assert f"A-{ids.open}: mem0 on golden got worse" in told
    assert "Alarm proven" in told
    assert told.count(" has it") == 3


def test_a_run_and_a_case_lead_to_their_alert(
    open_page: Open, url: str, ids: Alarmed, seeded: Seeded
) -> None:
    """The run that an alert began with, and a case that it lost, name it."""
    with closing(open_database(url)) as db:
        row = queries.alert(db, ids.open)
    assert row is not None
    assert f"A-{ids.open}:" in text(open_page("run", url, run=str(row.first_bad_run_id)))
    case = open_page("case", url, suite="golden", case=seeded.world.broken[0], backend="mem0")
    assert f"A-{ids.open}:" in text(case)


def test_several_series_in_one_alert(open_page: Open, copied: str, copy: Database) -> None:
    """An alert of two backends says so, and lists all that is wrong in it."""
    known = queries.alerts(copy)
    run = queries.runs(copy, suites=["golden"], backends=["dense"], statuses=["whole"], limit=1)[0]
    lead = next(
        row for row in known if row.incident.kind.name == "regression" and row.incident.state == "open"
    )
    content = lead.incident.signals[0].content
    seen = [
        Sighting(Key("regression", "golden", name), "sure", 0.1, ("x",), content)
        for name in ("dense", "keyword")
    ]
    facts = Facts(run.started_at + timedelta(hours=5), run.id, shared=True)
    turned = writes.turn_alerts(copy, lambda _: advance([], seen, facts))
    at = open_page("alert", copied, alert=str(turned[-1].incident.id))
    assert title(at) == "dense on golden got worse, and 1 series more"
    assert "2 backends · golden" in text(at)
    frame = next(frame.value for frame in at.dataframe if "standing" in frame.value)
    assert list(frame["where"]) == ["golden · dense", "golden · keyword"]
