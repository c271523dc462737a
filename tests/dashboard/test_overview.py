"""Overview: what a card says, and what it says when nothing comes any more."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path

import pytest
import time_machine

from dashboard import axes, sparkline
from dashboard.curves import Level
from dashboard.palette import THEMES
from dashboard.sparkline import Dot, Frame
from store import queries
from store.database import Database
from store.queries import OwedLook
from tests.dashboard.conftest import Open, Seeded
from tests.dashboard.test_charts import START, STYLES
from tests.dashboard.test_pages import text, title
from tests.dashboard.test_verdicts import run_of


def test_the_instrument_is_told_from_the_backend(open_page: Open, seeded: Seeded) -> None:
    """A run that does not count has the badge of a failing collector, and no verdict."""
    assert "violet-badge[:material/sensors_off: Collector failing]" in text(open_page("overview", seeded.url))


def test_silence_is_no_good_news(open_page: Open, seeded: Seeded) -> None:
    """Days after the last night each card says since when nothing came, and so does the title."""
    assert "No data since" not in text(open_page("overview", seeded.url))
    with time_machine.travel(datetime.now(UTC) + timedelta(days=4), tick=True):
        at = open_page("overview", seeded.url)
        assert "brought no new data" in title(at)
        assert "No data since" in text(at)
        assert "badge[:material/trending_down:" not in text(at)


@pytest.mark.parametrize(("hours", "silent"), [(20, False), (50, False), (61, True)])
def test_two_runs_overdue_are_silence(hours: int, silent: bool) -> None:
    """Of a backend that runs every night one night may be late, but not two; who never ran is not silent."""
    nights = [START + timedelta(days=day) for day in range(9)]
    assert axes.is_silent(nights, nights[-1] + timedelta(hours=hours)) is silent
    assert not axes.is_silent([], START)


def test_a_suspicion_says_when_it_is_asked_again(
    open_page: Open, seeded: Seeded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the card of what is suspected stands when it is looked at once more: as long after the last look as
    is configured."""
    run = run_of(seeded, "mem0")
    shutil.copy(seeded.path, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as record:
        record.execute(
            "UPDATE verdict SET stage = 'suspected', content = json_set(content, '$.stage', 'suspected') "
            "WHERE run_id = ?", [run.id],
        )  # fmt: skip
        record.commit()
    ended = datetime.now(UTC) - timedelta(hours=1)

    @wraps(queries.owed_looks)
    def owed(_: Database) -> list[OwedLook]:
        return [OwedLook(1, run.id, "golden", "mem0", ended, 0.0)]

    monkeypatch.setattr(queries, "owed_looks", owed)
    shown = text(open_page("overview", f"sqlite:///{tmp_path}/copy.db"))
    assert "Suspected" in shown
    due = ended + timedelta(hours=2)
    assert "asking again" in shown
    assert f"{due:%H:%M}" in shown


def test_a_card_draws_levels_where_something_changed() -> None:
    """A level is a thick line from its first run to its last, a higher one higher up."""
    dots = [Dot(START + timedelta(days=day), 0.9 - 0.1 * (day > 4), None, None) for day in range(10)]
    steps = [Level(dots[0].at, dots[4].at, 0.9), Level(dots[5].at, dots[9].at, 0.8)]
    frame = Frame(dots[0].at, dots[-1].at, 40.0)
    drawn = sparkline.sparkline(dots, STYLES["mem0"], THEMES["light"], frame, steps)
    thick = [part for part in drawn.split("<line ")[1:] if 'stroke-width="3"' in part]
    heights = [float(part.split('y1="')[1].split('"')[0]) for part in thick]
    assert len(heights) == 2
    assert heights[0] < heights[1]
