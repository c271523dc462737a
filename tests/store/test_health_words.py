"""Sentences about the monitor itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from store import health_words
from store.health_words import Pulse, health_title, leg_off, refused_configuration, settings_title
from store.queries import FireRow

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)  # a Monday
ALIVE = Pulse(12.0, alive=True, scheduled=True)
DEAD = "No collector is running: nothing will be measured"


@pytest.mark.parametrize(
    ("pulse", "expected"),
    [
        (ALIVE, "Everything ran; the last collector heartbeat is 12 s old"),
        (ALIVE._replace(scheduled=False), "Nothing is scheduled; the last collector heartbeat is 12 s old"),
        (Pulse(None, alive=False, scheduled=False), DEAD),
        (Pulse(7200.0, alive=False, scheduled=True), DEAD),
        (ALIVE._replace(broken=1, closed=14), "1 of 14 runs of the last 24 hours does not count"),
        (ALIVE._replace(broken=2, closed=14), "2 of 14 runs of the last 24 hours do not count"),
        (
            ALIVE._replace(indexes=[leg_off("Notes", "keyword", "9 too few")]),
            "The keyword index of Notes holds 9 memories too few",
        ),
        (
            ALIVE._replace(indexes=[leg_off("Notes", "keyword", "differ"), "x", "y"]),
            "The indexes of Notes differ, and 2 other indexes likewise",
        ),
        (
            ALIVE._replace(configuration=True),
            "The configuration was changed and is broken, so the former stays in force",
        ),
        (
            Pulse(None, alive=False, scheduled=True, missed=[NOW], broken=1, closed=1),
            f"{DEAD}; one scheduled run was missed today; 1 of 1 run of the last 24 hours does not count",
        ),
    ],
)
def test_a_title_tells_the_worst_first(pulse: Pulse, expected: str) -> None:
    """Dead before missed before broken; only when nothing is wrong is all well."""
    assert health_title(pulse, NOW) == expected


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ([1], "One scheduled run was missed today"),
        ([30], "One scheduled run was missed yesterday"),
        ([54], "One scheduled run was missed on Saturday"),
        ([1, 78], "Two scheduled runs were missed since Friday"),
        ([1, 2], "Two scheduled runs were missed today"),
        ([1, 30], "Two scheduled runs were missed since yesterday"),
        ([1, 168], "Two scheduled runs were missed since 23 Nov"),
    ],
)
def test_missed_runs_have_a_day(hours: list[int], expected: str) -> None:
    """A weekday names a day only while it can mean one alone."""
    missed = [NOW - timedelta(hours=n) for n in hours]
    assert health_title(ALIVE._replace(missed=missed), NOW) == expected


def test_a_refused_configuration_is_news_until_another_is_in_force() -> None:
    """What was refused before the collector started, or before a good one came, is over."""
    broken = (NOW, f"{health_words.BROKEN}, so the former stays in force: limits.timeout")
    good = (NOW, health_words.IN_FORCE)
    assert refused_configuration([(NOW, "started"), broken], None) == broken[1]
    assert refused_configuration([broken, good], None) == broken[1]
    assert refused_configuration([good, broken], None) == ""
    assert refused_configuration([broken], NOW + timedelta(seconds=1)) == ""
    assert refused_configuration([], None) == ""


@pytest.mark.parametrize(
    ("file", "origins", "expected"),
    [
        ("", ["default"], "Every key has its default; who opens these pages can only read"),
        ("m.toml", ["m.toml", "m.toml", "default"],
         "m.toml sets 2 keys; who opens these pages can only read"),
        ("m.toml", ["m.toml", "MEMTREND_X"],
         "m.toml sets 1 key and environment variables set 1 key; who opens these pages can only read"),
        ("", ["MEMTREND_X"], "Environment variables set 1 key; who opens these pages can only read"),
    ],
)  # fmt: skip
def test_settings_say_where_they_come_from(file: str, origins: list[str], expected: str) -> None:
    """Keys of the file and of the environment are counted apart."""
    assert settings_title(file, origins, "default", writes=False) == expected


def test_writing_is_explained() -> None:
    """What the configuration says is the reason; else the address is."""
    assert health_words.may_write(True, "0.0.0.0", False) == "[dashboard] writes = true"
    assert health_words.may_write(None, "127.0.0.1", True) == "127.0.0.1 is this machine alone"
    assert health_words.may_write(None, "", False).startswith("every address can be reached from elsewhere")


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, "0 B"), (999, "999 B"), (812_400, "812 kB"), (1_310_000_000, "1.31 GB"), (4e15, "4,000 TB")],
)
def test_sizes(n: int, expected: str) -> None:
    """Bytes have a unit and no more digits than are read."""
    assert health_words.size(n) == expected


@pytest.mark.parametrize(
    ("counted", "expected", "count", "said"),
    [
        ([168, 159], 168, 159, "9 too few"),
        ([168, 170], 168, 170, "2 too many"),
        ([168, 159], 168, 168, "as recorded"),
        ([168], None, 168, "only leg"),
        ([168, 168], None, 168, "agree"),
        ([168, 159], None, 168, "differ"),
    ],
)
def test_legs(counted: list[int], expected: int | None, count: int, said: str) -> None:
    """A leg is held against what was recorded, and without that against the other legs."""
    assert health_words.legs(counted, expected, count) == said


def fire(waited: float | None, jitter: float = 0.0) -> FireRow:
    due = NOW + timedelta(seconds=jitter)
    began = None if waited is None else due + timedelta(seconds=waited)
    return FireRow("nightly", NOW, "done", (), began, None, due)


@pytest.mark.parametrize(
    ("fires", "told"),
    [
        ([], None),
        ([fire(None)], None),
        ([fire(0.4, jitter=300)], "began under a second late"),
        ([fire(0.4), fire(0.6), fire(240.0), fire(None)], "began under a second late, the latest 4 min"),
        ([fire(20.0), fire(40.0)], "began 30 s late, the latest 40 s"),
    ],
)
def test_how_late_fires_begin(fires: list[FireRow], told: str | None) -> None:
    """The monitor's own delay counts from when a fire was due, jitter and all; what never began has none."""
    said = health_words.punctuality(fires)
    assert said == (told and f"those of the last day {told}")
