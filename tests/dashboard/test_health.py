"""Health in every state of the monitor, as AppTest sees it."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from streamlit.testing.v1 import AppTest

from store import queries, writes
from store.database import Database, open_database
from store.metrics import METRICS
from tests.dashboard.conftest import Open
from tests.dashboard.facts import HOSTILE
from tests.dashboard.monitored import NOW, cards, configured, expect_fire, frame, fresh
from tests.dashboard.test_pages import text, title
from tests.dashboard.watched import count_index

__all__ = ["configured", "fresh"]
"""Fixtures of the tests here."""


@pytest.fixture
def watched(watched_record: Path, tmp_path: Path) -> str:
    """The URL of a copy of a record with schedules, fires, leases, events and all that Health tells of."""
    shutil.copy(watched_record, tmp_path / "watched.db")
    return f"sqlite:///{tmp_path}/watched.db"


# The title ------------------------------------------------------------------------------------------------


def test_all_is_well(open_page: Open, fresh: Database) -> None:
    """A living collector whose schedules were kept is told in one sentence, with the age of its heartbeat."""
    assert title(open_page("health", fresh.url_public)).startswith(
        "Everything ran; the last collector heartbeat is "
    )


def test_nothing_scheduled(open_page: Open, fresh: Database) -> None:
    """A living collector with nothing to do is not told as one that ran everything."""
    writes.record_schedule(fresh, "nightly", None, False)
    at = open_page("health", fresh.url_public)
    assert title(at).startswith("Nothing is scheduled; the last collector heartbeat is ")
    assert "No schedule was due in that time" in text(at)


def test_a_dead_collector(open_page: Open, fresh: Database) -> None:
    """A collector that went silent is the first thing that the title says, and the page says what to type."""
    with time_machine.travel(NOW - timedelta(hours=2), tick=False):
        writes.beat(fresh, "collector", 4711, "here")
    at = open_page("health", fresh.url_public)
    assert title(at) == "No collector is running: nothing will be measured"
    assert "memtrend collect" in [code.value for code in at.code]
    assert re.fullmatch(r"beat 2 h \d+ min ago", cards(at)["Collector"])  # seeded once for all tests
    assert {tuple(row["state"]) for row in frame(at, "token")} == {("silent",)}


def test_a_dead_collector_beside_runs_that_were_missed(open_page: Open, fresh: Database) -> None:
    """What nobody ran is told although nobody is there to tell it."""
    with time_machine.travel(NOW - timedelta(hours=3), tick=False):
        writes.beat(fresh, "collector", 4711, "here")
    expect_fire(fresh, NOW - timedelta(hours=50))
    expect_fire(fresh, NOW - timedelta(hours=2))
    at = open_page("health", fresh.url_public)
    dead, missed = title(at).split("; ")
    assert dead == "No collector is running: nothing will be measured"
    assert missed.startswith("two scheduled runs were missed since ")
    assert [row["state"] for row in frame(at, "reason")] == [["missed"], ["missed"]]


def test_a_missed_run_of_long_ago_is_no_news(open_page: Open, fresh: Database) -> None:
    """The calendar keeps a missed run for a month, the title for a week."""
    expect_fire(fresh, NOW - timedelta(days=9))
    at = open_page("health", fresh.url_public)
    assert title(at).startswith("Everything ran; ")
    assert [row["reason"] for row in frame(at, "reason")] == ["no collector ran"]


def test_a_run_that_does_not_count(open_page: Open, watched: str) -> None:
    """An invalid run of last night is in the title, in its card and in the table of fires, with its name."""
    at = open_page("health", watched)
    assert "of the last 24 hours does not count" in title(at)
    assert "notes on contract: invalid" in text(at)
    assert str(frame(at, "reason")[0]["reason"]).startswith("notes on contract, run ")


def test_a_broken_configuration_is_told(open_page: Open, fresh: Database) -> None:
    """What a collector refused to take over is said until it takes over another."""
    broken = "the configuration was changed but is broken, so the former stays in force: limits.timeout: <b>"
    writes.add_event(fresh, "error", "collector", broken)
    at = open_page("health", fresh.url_public)
    assert title(at) == "The configuration was changed and is broken, so the former stays in force"
    assert "limits.timeout: <b>" in text(at)
    writes.add_event(fresh, "info", "collector", "the changed configuration is in force")
    assert title(at.run()).startswith("Everything ran; ")


def test_a_collector_that_died_days_ago(open_page: Open, watched: str) -> None:
    """Its heartbeat is told in days from two days on, on the card of Health and on the overview."""
    _edit(watched, "UPDATE heartbeat SET at = datetime(at, '-49 hours')")
    assert cards(open_page("health", watched))["Collector"] == "beat 2 days ago"
    assert "last seen 2 days ago" in text(open_page("overview", watched))


def test_calibrations_without_a_baseline(open_page: Open, watched: str) -> None:
    """Where calibrations tell of no false verdict yet, the card says what they wait for."""
    _edit(watched, f"DELETE FROM rollup WHERE metric_id = {METRICS['false_verdict'].id}")
    at = open_page("health", watched)
    assert cards(at)["False alarms at rest"] == "–"
    assert "five days of baseline" in text(at)
    assert frame(at, "flips")


def test_an_environment_without_a_system(open_page: Open, watched: str) -> None:
    """What an environment does not tell is a dash."""
    _edit(watched, "UPDATE environment SET content = json_remove(content, '$.os')")
    rows = frame(open_page("health", watched), "os")
    assert {row["os"] for row in rows} == {"–"}


def _edit(url: str, statement: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as record, record:
        record.execute(statement)


def test_an_empty_record(open_page: Open, tmp_path: Path) -> None:
    """Before anything ran, Health says that nothing will be measured, and three commands."""
    at = open_page("health", f"sqlite:///{tmp_path}/new.db")
    assert title(at) == "No collector is running: nothing will be measured"
    assert [code.value for code in at.code] == ["memtrend up", "memtrend collect", "memtrend doctor"]


# Below it -------------------------------------------------------------------------------------------------


def test_the_calendar_has_a_row_for_each_suite_and_backend(open_page: Open, watched: str) -> None:
    """Fires are drawn by schedule, suite and backend; a cell carries the run that it opens."""
    at = open_page("health", watched)
    (chart,) = at.get("plotly_chart")
    for piece in ("nightly", "golden", "contract", "noise"):
        assert piece in chart.proto.spec
    # Between midnight and the nightly fire, today's is still ahead.
    assert any(whole in chart.proto.spec for whole in ("30 of 30", "29 of 29"))
    database = open_database(watched)
    run = next(run for run in queries.runs(database, statuses=["invalid"]) if run.backend == "notes")
    database.close()
    assert f"[{run.id}]" in chart.proto.spec


def test_a_late_fire_says_how_late(open_page: Open, watched: str) -> None:
    """A night that was made up for says how long after its time it began."""
    late = [row for row in frame(open_page("health", watched), "reason") if row["state"] == ["late"]]
    assert [row["reason"] for row in late] == ["begun 3 h 0 min after its time"]


def test_index_counts(open_page: Open, watched: str) -> None:
    """Each leg shows what it holds, since when, and what it lacks of what was recorded."""
    at = open_page("health", watched)
    rows = {row["leg"]: row for row in frame(at, "leg")}
    assert (rows["keyword"]["count"], rows["keyword"]["stands"]) == (159, ["9 too few"])
    assert (rows["vector"]["count"], rows["vector"]["stands"]) == (168, ["as recorded"])
    assert rows["keyword"]["over"][-4:] == [168.0, 159.0, 159.0, 159.0]
    assert "the keyword index of hybrid holds 9 memories too few" in title(at)


def test_noise(open_page: Open, watched: str) -> None:
    """A backend held against itself shows how many cases differed, and how often that would have alarmed."""
    at = open_page("health", watched)
    assert cards(at)["False alarms at rest"] == "0 of 6"
    assert {row["backend"]: row["flips"] for row in frame(at, "flips")} == {
        "hybrid": "1 of 29",
        "mem0": "1 of 29",
    }


def test_pace_and_queue(open_page: Open, watched: str) -> None:
    """The newest whole run of each series shows its time, scenarios a minute and the share of the diagnosis;
    requests show how many wait."""
    at = open_page("health", watched)
    rows = frame(at, "pace")
    assert {row["took"] for row in rows} == {"2 min", "0.0 s"}
    mem0 = next(row for row in rows if (row["backend"], row["suite"]) == ("mem0", "golden"))
    assert mem0["pace"] == pytest.approx(0.6)
    assert 0 < mem0["diagnosis"] < 50
    assert cards(at)["Queue of requests"] == "1 waiting"


def test_leases_end_by_the_clock_of_the_database(open_page: Open, watched: str) -> None:
    """Who holds what, with token and end."""
    rows = {row["what"]: row for row in frame(open_page("health", watched), "token")}
    assert rows["lease of collector"]["state"] == ["held"]
    assert rows["lease of collector"]["owner"] == "here-4026531836:4711"
    assert str(rows["lease of collector"]["when"]).startswith("ends in ")
    assert rows["lease of backend:hybrid"]["state"] == ["held"]


def test_events_by_level(open_page: Open, watched: str) -> None:
    """Warnings and errors are shown, and the rest on demand; what they say stays text."""
    at = open_page("health", watched)
    shown = {row["message"] for row in frame(at, "message")}
    assert HOSTILE in shown
    assert "the changed configuration is in force" not in shown
    at.get("button_group")[0].set_value(["info"]).run()
    assert {row["message"] for row in frame(at, "message")} >= {"the changed configuration is in force"}


def test_every_table_has_a_download(open_page: Open, watched: str) -> None:
    """Each of the tables of Health and of Settings can be taken along."""
    health = open_page("health", watched)
    assert len(health.get("download_button")) == 8
    assert len(health.dataframe) == 7
    settings = open_page("settings", watched)
    assert len(settings.get("download_button")) == 7


HALF, WHOLE = 552, 1136
"""Pixels that a table has in a window of 1280: beside another one, and alone."""


def width(at: AppTest, column: str) -> int:
    """Pixels that the columns of the table with this column ask for."""
    table = next(table for table in at.dataframe if column in table.value.columns)
    columns = json.loads(table.proto.columns)
    return sum(columns[name]["width"] for name in table.value.columns)


@pytest.mark.parametrize(
    ("page", "column", "room"),
    [
        ("health", "leg", HALF),
        ("health", "flips", HALF),
        ("health", "packages", HALF),
        ("health", "pace", HALF),
        ("health", "message", WHOLE),
        ("settings", "when", WHOLE),
    ],
)
def test_no_column_is_cut_off(
    page: str, column: str, room: int, open_page: Open, watched: str, configured: Path
) -> None:
    """What a table tells is seen in a window of a laptop, to its last column."""
    assert width(open_page(page, watched), column) <= room


def test_counts_without_an_expectation(open_page: Open, fresh: Database) -> None:
    """Where nobody recorded how many there should be, legs are held against each other."""
    count_index(fresh, NOW - timedelta(hours=3), 100, 90, expected=None)
    at = open_page("health", fresh.url_public)
    assert [row["stands"] for row in frame(at, "leg")] == [["differ"], ["differ"]]
    assert title(at) == "The indexes of hybrid differ"


def test_the_dead_man_switch_is_told(
    fresh: Database, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it was last answered, or that it never was; its address is not shown."""
    monkeypatch.setenv("MEMTREND_ALERTS__DEAD_MAN_URL", "https://watch.example.org/s3cret")
    page = text(open_page("health", fresh.url_public))
    assert "The dead-man switch has never answered." in page
    writes.beat(fresh, "dead-man", 4711, "here")
    at = open_page("health", fresh.url_public)
    assert "The dead-man switch answered" in text(at)
    assert "s3cret" not in text(at)
    assert [row["what"] for row in frame(at, "token")] == ["heartbeat of collector"]
