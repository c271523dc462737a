"""Settings, and what a configuration that breaks does to the pages, as AppTest sees them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from streamlit import config

from dashboard import server
from store import writes
from store.database import Database
from tests.dashboard.conftest import Open
from tests.dashboard.monitored import CONFIGURATION, NOW, cards, configured, expect_fire, frame, fresh
from tests.dashboard.test_pages import text, title

__all__ = ["configured", "fresh"]
"""Fixtures of the tests here."""


def test_settings_of_the_defaults(open_page: Open, fresh: Database) -> None:
    """Without a file, Settings says so, and what is in force all the same."""
    at = open_page("settings", fresh.url_public)
    assert (
        title(at) == "Environment variables set 1 key; who opens these pages may start runs and act on alerts"
    )
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
    assert title(at).endswith("who opens these pages can only read")
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
