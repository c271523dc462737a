"""Health and Settings in every state of the monitor, as AppTest sees them."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import time_machine
from streamlit import config
from streamlit.testing.v1 import AppTest

from dashboard import server
from store import queries, writes
from store.database import Database, open_database
from store.metrics import METRICS
from tests.dashboard.conftest import Open
from tests.dashboard.facts import HOSTILE
from tests.dashboard.test_pages import text, title
from tests.dashboard.watched import count_index

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def watched(watched_record: Path, tmp_path: Path) -> str:
    """The URL of a copy of a record with schedules, fires, leases, events and all that Health tells of."""
    shutil.copy(watched_record, tmp_path / "watched.db")
    return f"sqlite:///{tmp_path}/watched.db"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Database]:
    """A record of one living collector, one schedule, and nothing else."""
    database = open_database(f"sqlite:///{tmp_path}/fresh.db")
    writes.beat(database, "collector", 4711, "here")
    writes.record_schedule(database, "nightly", NOW + timedelta(hours=1), True)
    yield database
    database.close()


def cards(at: AppTest) -> dict[str, str]:
    return {metric.label.replace("\\", ""): metric.value for metric in at.metric}


def frame(at: AppTest, column: str) -> list[dict[str, object]]:
    """The rows of the table that has this column."""
    table = next(table.value for table in at.dataframe if column in table.value.columns)
    return [
        {name: list(value) if isinstance(value, np.ndarray) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def expect_fire(database: Database, at: datetime, schedule: str = "nightly") -> None:
    with time_machine.travel(at - timedelta(hours=1), tick=False):
        writes.write_expected(database, schedule, [at], at)


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
    assert cards(at)["False verdicts, A against A"] == "–"
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
    for piece in ("nightly", "golden", "contract", "noise", "30 of 30"):
        assert piece in chart.proto.spec
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
    assert "the index of hybrid has 9 too few in leg keyword" in title(at)


def test_noise(open_page: Open, watched: str) -> None:
    """A backend held against itself shows how many cases differed, and how often that would have alarmed."""
    at = open_page("health", watched)
    assert cards(at)["False verdicts, A against A"] == "0 of 6"
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
    assert len(health.get("download_button")) == 7
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
    assert title(at) == "The legs of the index of hybrid differ"


# Settings -------------------------------------------------------------------------------------------------

CONFIGURATION = """
[backends.mem0]
type = "mem0"
package = "mem0ai==2.2.1"
control = "mem0ai==2.0.0"
config = { llm = { config = { api_key = "sk-planted-secret" } } }

[schedules.hourly]
every = "1h"
suites = ["golden"]
subset = { share = 0.2 }
jitter = "10m"
window = "2h"
catch_up = "none"

[api]
token = "planted-token"
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "memtrend.toml"
    path.write_text(CONFIGURATION)
    monkeypatch.setenv("MEMTREND_CONFIG", str(path))
    return path


def test_settings_of_the_defaults(open_page: Open, fresh: Database) -> None:
    """Without a file, Settings says so, and what is in force all the same."""
    at = open_page("settings", fresh.url_public)
    assert title(at) == "Environment variables set 1 key; these pages may ask for runs"
    origins = {row["name"]: row["origin"] for row in frame(at, "origin")}
    assert origins["database.url"] == "MEMTREND_DATABASE__URL"
    assert origins["limits.timeout"] == "default"
    assert {row["name"]: row["value"] for row in frame(at, "origin")}["dashboard.writes"] == "true"
    assert cards(at)["Configuration"] == "defaults"


def test_settings_hide_secrets(open_page: Open, fresh: Database, configured: Path) -> None:
    """Each key says where it comes from, and none that is a secret what it is."""
    at = open_page("settings", fresh.url_public)
    keys = {row["name"]: row for row in frame(at, "origin")}
    assert keys["api.token"] == {"name": "api.token", "value": '"***"', "origin": "memtrend.toml"}
    assert keys["backends.mem0.package"]["origin"] == "memtrend.toml"
    assert keys["backends.mem0.owner"]["origin"] == "default"
    everything = text(at) + "".join(table.value.to_csv() for table in at.dataframe)
    assert "planted" not in everything.replace(str(configured.parent), "")


def test_settings_tell_schedules_and_backends(open_page: Open, fresh: Database, configured: Path) -> None:
    """A schedule shows when it fires, a backend its release and control."""
    at = open_page("settings", fresh.url_public)
    assert [(row["schedule"], row["when"], row["backends"]) for row in frame(at, "when")] == [
        ("hourly", "every 1h", "all")
    ]
    assert [row["rules"] for row in frame(at, "when")] == ["subset 20%, jitter 10m, window 2h, catch-up none"]
    assert [(row["package"], row["control"]) for row in frame(at, "package")] == [
        ("mem0ai==2.2.1", "mem0ai==2.0.0")
    ]


def test_what_waits_for_money_says_so(open_page: Open, fresh: Database, configured: Path) -> None:
    """A fire that waits for the day's money stands in both pages with the reason, until it has run."""
    at, why = NOW - timedelta(minutes=9), "golden on mem0 may not begin before midnight"
    expect_fire(fresh, at, "hourly")
    leader = writes.acquire_lease(fresh, "collector", "here:4711", 3600)
    assert leader is not None
    assert writes.claim_fire(fresh, "hourly", at, leader)
    writes.hold_fire(fresh, "hourly", at, why, leader, begun=False)
    (row,) = frame(open_page("health", fresh.url_public), "reason")
    assert (row["schedule"], row["state"], row["reason"]) == ("hourly", ["waits"], why)
    assert [row["waits"] for row in frame(open_page("settings", fresh.url_public), "when")] == [why]
    writes.finish_fire(fresh, "hourly", at, "done", None, leader)
    assert [row["waits"] for row in frame(open_page("settings", fresh.url_public), "when")] == [None]


def test_a_file_that_breaks_while_pages_are_open(open_page: Open, fresh: Database, configured: Path) -> None:
    """The former configuration stays in force, and the page says which key is wrong, not its value."""
    at = open_page("settings", fresh.url_public)
    configured.write_text(CONFIGURATION + "\n[limits]\ntimeout = 'hush-hush'\n")
    at.run()
    assert title(at) == "The configuration was changed and is broken, so the former stays in force"
    assert "limits.timeout" in text(at)
    assert "hush-hush" not in text(at)
    assert {row["origin"] for row in frame(at, "origin")} == {""}


@pytest.mark.parametrize("page", ["overview", "trends", "runs", "health", "settings"])
def test_a_file_that_breaks_before_a_page_was_opened(
    page: str, open_page: Open, fresh: Database, configured: Path
) -> None:
    """Pages go by what the dashboard started with, Health and Settings name key and file, and a mended file
    comes into force without a start."""
    server._log_section()
    configured.write_text(CONFIGURATION.replace('"1h"', '"1x"'))
    at = open_page(page, fresh.url_public)
    told = "configuration was changed and is broken, so the former stays in force"
    assert "cannot read" not in title(at)
    if page in ("health", "settings"):
        assert told in title(at)
        assert "memtrend.toml" in text(at)
        assert "schedules.hourly.every" in text(at)
    configured.write_text(CONFIGURATION.replace('"1h"', '"2h"'))
    at.run()
    assert told not in title(at)
    if page == "settings":
        assert [row["when"] for row in frame(at, "when")] == ["every 2h"]


def test_a_broken_file_over_an_empty_record(open_page: Open, configured: Path, tmp_path: Path) -> None:
    """Health says so before anything was recorded, too."""
    server._log_section()
    configured.write_text("[schedules\n")
    at = open_page("health", f"sqlite:///{tmp_path}/new.db")
    assert title(at).endswith("the configuration was changed and is broken, so the former stays in force")
    assert "line 1" in text(at)


def test_a_file_that_is_gone(
    open_page: Open, fresh: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It brings no defaults into force: pages that may not write still may not, and Settings says why."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "memtrend.toml"
    file.write_text("[dashboard]\nwrites = false\n")
    server._log_section()
    file.unlink()
    at = open_page("settings", fresh.url_public)
    assert title(at) == "The configuration was changed and is broken, so the former stays in force"
    assert "memtrend.toml is gone" in text(at)
    assert cards(at)["Writing from these pages"] == "off"


def test_why_nothing_can_be_asked_for(open_page: Open, fresh: Database) -> None:
    """Where others reach the page, Settings says that it only reads, and what would change that."""
    config.set_option("server.address", "0.0.0.0")
    at = open_page("settings", fresh.url_public)
    assert title(at).endswith("these pages only read")
    assert cards(at)["Writing from these pages"] == "off"
    assert "[dashboard] writes = true allows it" in text(at)


def test_versions_and_the_record(open_page: Open, fresh: Database) -> None:
    """Settings names the versions of what runs, and where the record is and how large."""
    at = open_page("settings", fresh.url_public)
    versions = {row["what"]: row["version"] for row in frame(at, "version")}
    assert versions["schema of the record"].startswith("revision ")
    assert {"memtrend", "SQLite", "Python", "streamlit"} <= versions.keys()
    assert "fresh.db" in text(at)
    assert cards(at)["Record"].endswith("kB")


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
