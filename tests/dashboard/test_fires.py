"""The calendar of schedules against runs, without a browser."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from dashboard import fires, palette
from dashboard.fires import Look
from store.queries import FireRow, RunState

FIRST = datetime(2026, 11, 2, 3, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
STYLE = palette.styles([], palette.THEMES["light"])


def fire(day: int, state: Any, *run_ids: int, hour: int = 0, schedule: str = "nightly") -> FireRow:
    at = FIRST + timedelta(days=day, hours=hour)
    return FireRow(schedule, at, state, run_ids, at if run_ids else None, None, at)


def run(run_id: int, backend: str, status: str = "whole", suite: str = "golden") -> RunState:
    return RunState(run_id, suite, backend, status)


def day(number: int) -> date:
    return (FIRST + timedelta(days=number)).date()


def test_each_backend_has_the_fate_of_its_own_run() -> None:
    """A fire of which one run does not count is done for the others; one that nobody ran is missed by all."""
    found = [fire(0, "done", 1, 2), fire(1, "invalid", 3, 4), fire(2, "missed"), fire(3, "late", 5, 6)]
    runs = [
        *(run(1, "keyword"), run(2, "dense"), run(3, "keyword"), run(4, "dense", "invalid")),
        *(run(5, "keyword"), run(6, "dense")),
    ]
    keyword, dense = fires.rows(found, runs, ZONE)
    states = [[row.cells[day(n)].state for n in range(4)] for row in (keyword, dense)]
    assert states == [["done", "done", "missed", "late"], ["done", "invalid", "missed", "late"]]
    assert [cell.run_id for cell in dense.cells.values()] == [2, 4, None, 6]
    assert "run 4 · invalid" in dense.cells[day(1)].told


def test_the_worst_fire_of_a_day_is_shown() -> None:
    """A day of several fires says how many of them ran, and opens the run that does not count."""
    found = [fire(0, "done", 1), fire(0, "invalid", 2, hour=4), fire(0, "done", 3, hour=8)]
    (row,) = fires.rows(found, [run(1, "dense"), run(2, "dense", "void"), run(3, "dense")], ZONE)
    cell = row.cells[day(0)]
    assert (cell.state, cell.run_id, cell.due, cell.done) == ("invalid", 2, 3, 2)
    assert cell.told.endswith("2 of 3 ran that day")


def test_a_backend_is_scheduled_from_its_first_run_on() -> None:
    """A backend that came later has no cell before, nor one for a fire that ran others alone."""
    found = [fire(0, "missed"), fire(1, "done", 1), fire(2, "done", 2, 3), fire(3, "done", 4)]
    runs = [run(1, "keyword"), run(2, "keyword"), run(3, "dense"), run(4, "keyword")]
    keyword, dense = fires.rows(found, runs, ZONE)
    assert list(keyword.cells) == [day(1), day(2), day(3)]
    assert list(dense.cells) == [day(2)]


def test_a_schedule_that_never_ran_has_a_row() -> None:
    """What was always missed is seen."""
    (row,) = fires.rows([fire(0, "missed"), fire(1, "due")], [], ZONE)
    assert (row.suite, row.backend) == ("", "")
    assert [cell.state for cell in row.cells.values()] == ["missed", "due"]


def test_a_day_is_the_viewer_s() -> None:
    """A fire shortly before midnight belongs to the day on the viewer's clock."""
    (row,) = fires.rows([fire(0, "done", 1, hour=20)], [run(1, "dense")], ZoneInfo("Europe/Berlin"))
    assert list(row.cells) == [day(1)]


def test_what_is_due_counts_for_nothing() -> None:
    """A fire that is to come, or at work, or skipped on purpose, is neither done nor failed."""
    found = [fire(0, "done", 1), fire(1, "skipped"), fire(2, "due", 2)]
    rows = fires.rows(found, [run(1, "dense"), run(2, "dense", "running")], ZONE)
    assert fires.alt(rows) == "Schedules against runs: 1 of 1 scheduled run of nightly counted"


def test_names_from_outside_are_no_tags() -> None:
    """A schedule's name is text in the figure, also where the pointer rests."""
    theme = palette.THEMES["dark"]
    rows = fires.rows([fire(0, "missed", schedule="<b>x</b>")], [], ZONE)
    drawn = fires.figure(rows, Look([day(0)], STYLE, theme)).to_json()
    assert "\\u003cb\\u003ex" not in drawn
    assert "&lt;b&gt;x" in drawn.replace("\\u0026", "&")


def test_each_state_has_its_own_colour() -> None:
    """No two states look alike, in light and in dark."""
    for theme in palette.THEMES.values():
        colours = fires.colours_of(theme)
        assert len(set(colours.values())) == len(colours) == 6
