"""Schedules: from cron lines and intervals to fire times."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.cron import CronTrigger

from collectors.schedule import MOST_AHEAD, ScheduleError, check_schedules, cron_trigger, next_fire, upcoming

WEDNESDAY = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
BERLIN = "Europe/Berlin"
SPRING, AUTUMN = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
"""The days before Berlin's clocks change: 02:00 becomes 03:00, and 03:00 becomes 02:00."""


def section(cron="0 3 * * *", *, every=None, timezone="UTC", enabled=True):
    """A schedule as far as fire times go: not every cron line here gets through the settings."""
    return SimpleNamespace(cron=None if every else cron, every=every, timezone=timezone, enabled=enabled)


def test_a_nightly_schedule_is_written_ahead_for_forty_days():
    """Every night of the next 40 days is expected once, and nothing else."""
    times = upcoming(section(), WEDNESDAY)
    first = datetime(2026, 3, 5, 3, 0, tzinfo=UTC)
    assert times == [first + timedelta(days=day) for day in range(40)]


def test_bounds():
    """What fires this very moment is past; what fires at the end of the span still belongs to it."""
    at_three = WEDNESDAY.replace(hour=3)
    assert upcoming(section(), at_three, days=1) == [at_three + timedelta(days=1)]


@pytest.mark.parametrize(("number", "name"), list(enumerate(DAYS)))
def test_a_named_weekday_is_that_weekday(number, name):
    """`sun` is Sunday, whatever number a scheduler gives it."""
    times = upcoming(section(f"0 9 * * {name}"), WEDNESDAY)
    assert {time.weekday() for time in times} == {number}
    assert len(times) in (5, 6)


def test_ranges_and_lists_of_weekdays():
    """Workdays are Monday to Friday; a list is exactly its days."""
    assert {time.weekday() for time in upcoming(section("0 9 * * mon-fri"), WEDNESDAY)} == {0, 1, 2, 3, 4}
    assert {time.weekday() for time in upcoming(section("0 9 * * sat,sun"), WEDNESDAY)} == {5, 6}


@pytest.mark.parametrize("weekday", ["0", "7", "1-5", "sun,1", "*/2"])
def test_counted_weekdays_are_refused(weekday):
    """A digit would mean another day than in cron, so it is refused with the names to write instead."""
    with pytest.raises(ScheduleError, match="mon, tue, wed, thu, fri, sat, sun"):
        cron_trigger(f"0 9 * * {weekday}")


def test_the_trap_that_counted_weekdays_are_refused_for():
    """The library's 0 is Monday: should it ever become Sunday as in cron, the refusal can go."""
    assert (
        CronTrigger.from_crontab("0 9 * * 0", timezone=UTC).get_next_fire_time(None, WEDNESDAY).weekday() == 0
    )


@pytest.mark.parametrize(
    ("cron", "part"),
    [
        ("0 25 * * *", "hour: "),
        ("0 3 * * someday", "weekday: "),
        ("*/90 3 * * *", "a step reaches beyond its field"),
        ("0 3 * *", "4 fields instead of five"),
        ("@daily", "minute hour day month weekday"),
    ],
)
def test_a_malformed_line_says_where(cron, part):
    """The message names the field at fault and what may stand there, never what stood there."""
    with pytest.raises(ScheduleError, match=f"cron: .*{part}") as caught:
        cron_trigger(cron)
    assert not {"25", "someday", "*/90", "@daily"} & set(str(caught.value).replace(",", " ").split())


def test_a_schedule_that_never_fires_is_refused():
    """The 30th of February is noticed when it is written, not when a month without runs has passed."""
    with pytest.raises(ScheduleError, match="never fires"):
        cron_trigger("0 3 30 2 *")


def test_the_schedule_at_fault_is_named():
    """Of several schedules, the message names the one that cannot be followed."""
    with pytest.raises(ScheduleError, match=r"schedules\.weekly: "):
        check_schedules({"nightly": section(), "weekly": section("0 3 * * 6")})


def test_a_disabled_schedule_is_not_expected():
    """What will not run is not missed."""
    assert upcoming(section(enabled=False), WEDNESDAY) == []
    assert next_fire(section(enabled=False), WEDNESDAY) is None


# Every


def test_every_counts_from_a_fixed_point():
    """Two collectors that start at different moments mean the same times: `6h` is 00, 06, 12 and 18 UTC."""
    first = upcoming(section(every="6h"), WEDNESDAY, days=2)
    assert [(time.day, time.hour) for time in first[:4]] == [(4, 18), (5, 0), (5, 6), (5, 12)]
    assert upcoming(section(every="6h"), WEDNESDAY + timedelta(minutes=7), days=2) == first


def test_every_has_no_holes_and_no_doubles():
    """An interval that no day divides by is kept over midnight and over clock changes."""
    times = upcoming(section(every="7h"), AUTUMN)
    assert {after - before for before, after in pairwise(times)} == {timedelta(hours=7)}


def test_every_bounds():
    """What fires this very moment is past, as with cron."""
    assert next_fire(section(every="12h"), WEDNESDAY) == WEDNESDAY + timedelta(hours=12)


# Timezones


def fires_around(day, cron, zone=BERLIN):
    """The fires of the two days after `day`, on the local clock."""
    times = upcoming(section(cron, timezone=zone), day, days=2)
    assert times == sorted(set(times))
    return [f"{time.astimezone(ZoneInfo(zone)):%d %H:%M}" for time in times]


def test_a_timezone_is_the_clock_of_the_line():
    """03:00 in Berlin is 02:00 UTC in winter and 01:00 in summer, and comes out in UTC."""
    for day, hour in ((WEDNESDAY, 2), (datetime(2026, 7, 1, tzinfo=UTC), 1)):
        time = next_fire(section(timezone=BERLIN), day)
        assert (time.hour, time.tzinfo) == (hour, UTC)


def test_an_hour_that_comes_twice_fires_once():
    """A nightly 02:30 fires on the autumn night with the first 02:30, and not with the second."""
    assert fires_around(AUTUMN, "30 2 * * *") == ["25 02:30", "26 02:30"]
    assert next_fire(section("30 2 * * *", timezone=BERLIN), AUTUMN).hour == 0


def test_the_traps_that_the_wall_clock_is_for():
    """In a zone, the library fires such a line twice in that night, and leaves out the midnight after
    spring's change: should it ever stop, zones can be left to it."""
    trigger = CronTrigger.from_crontab("30 2 * * *", timezone=ZoneInfo(BERLIN))
    first = trigger.get_next_fire_time(None, AUTUMN).astimezone(UTC)
    second = trigger.get_next_fire_time(None, first + timedelta(seconds=1)).astimezone(UTC)
    assert second - first == timedelta(hours=1)
    midnight = CronTrigger.from_crontab("0 0 * * *", timezone=ZoneInfo(BERLIN))
    before = datetime(2026, 3, 29, 0, 1, tzinfo=ZoneInfo(BERLIN))
    assert midnight.get_next_fire_time(None, before).day == 31


def test_what_spring_leaves_out_is_still_ahead_when_clocks_change():
    """Asked within the hour after the change, a nightly 02:30 is still to come, at 03:30."""
    after = datetime(2026, 3, 29, 1, 10, tzinfo=UTC)
    assert next_fire(section("30 2 * * *", timezone=BERLIN), after) == after.replace(minute=30)


def test_asked_within_the_second_pass_the_first_is_past():
    """In the hour that autumn repeats, a time of its first pass does not come again."""
    after = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    assert next_fire(section("30 2 * * *", timezone=BERLIN), after).day == 26


def test_an_hour_that_does_not_come_is_made_up_for():
    """A nightly 02:30 fires once on the spring night, an hour later by the clock."""
    assert fires_around(SPRING, "30 2 * * *") == ["29 03:30", "30 02:30"]


def test_lines_of_several_times_survive_both_changes():
    """Of 48 hours an hourly line fires in each; in autumn one hour bears the name of another, and is left
    out."""
    for day, hours in ((SPRING, 48), (AUTUMN, 47)):
        assert len(fires_around(day, "0 * * * *")) == hours
    assert fires_around(SPRING, "0,30 1-3 * * *")[:4] == ["29 01:00", "29 01:30", "29 03:00", "29 03:30"]
    assert fires_around(AUTUMN, "0 2,3 * * *") == ["25 02:00", "25 03:00", "26 02:00", "26 03:00"]


def test_a_change_of_half_an_hour():
    """Where clocks move by half an hour, a nightly line still fires once a day."""
    day = datetime(2026, 4, 3, 12, tzinfo=UTC)
    assert fires_around(day, "45 1 * * *", "Australia/Lord_Howe") == ["04 01:45", "05 01:45"]


LORD_HOWE = datetime(2026, 10, 3, 12, tzinfo=UTC)
"""02:00 becomes 02:30 in the night that follows."""


@pytest.mark.parametrize(
    ("cron", "night"),
    [
        ("15,40 2 * * *", ["04 02:40", "04 02:45"]),
        ("0,30 2 * * *", ["04 02:30"]),
        ("*/10 2 * * *", ["04 02:30", "04 02:40", "04 02:50"]),
        ("59 1,2 * * *", ["04 01:59", "04 02:59"]),
    ],
)
def test_what_is_made_up_for_displaces_nothing(cron, night):
    """A time that spring leaves out, and that comes after one that follows it on the clock, takes that one's
    place only where both are one moment."""
    fires = fires_around(LORD_HOWE, cron, "Australia/Lord_Howe")
    assert [time for time in fires if time.startswith("04")] == night


def test_every_time_of_a_line_has_its_moment():
    """Around every change of a year, the fires of a line are the moments of all its times on the local clock,
    each once and in order."""
    for zone in (BERLIN, "Australia/Lord_Howe", "Pacific/Chatham", "America/Santiago"):
        clock, start = ZoneInfo(zone), datetime(2026, 1, 1, 12, tzinfo=UTC)
        first = start.astimezone(clock).replace(tzinfo=None, hour=0, minute=0)
        walls = [
            first + timedelta(days=day, hours=hour, minutes=minute)
            for day, hour, minute in product(range(367), range(4), (5, 25, 40))
        ]
        moments = {wall.replace(tzinfo=clock).astimezone(UTC) for wall in walls}
        end = start + timedelta(days=365)
        times = upcoming(section("5,25,40 0-3 * * *", timezone=zone), start, days=365)
        assert times == sorted(moment for moment in moments if start < moment <= end), zone


def test_a_year_of_nights_has_each_date_once():
    """In any zone with clock changes, each date of a year has exactly one fire of a nightly line, before,
    within and after the hours that change."""
    zones = (BERLIN, "America/New_York", "America/Santiago", "Pacific/Chatham", "Africa/Cairo")
    for zone, cron in product(zones, ("0 0 * * *", "30 0 * * *", "30 2 * * *", "0 3 * * *")):
        start = datetime(2026, 1, 1, 12, tzinfo=UTC)
        times = upcoming(section(cron, timezone=zone), start, days=365)
        dates = [time.astimezone(ZoneInfo(zone)).date() for time in times]
        assert {after - before for before, after in pairwise(dates)} == {timedelta(days=1)}, (zone, cron)
        assert len(dates) == 365, (zone, cron)


def test_clock_changes_move_nothing(monkeypatch):
    """On a machine whose clocks change, a nightly run still comes once a day, at the same UTC."""
    monkeypatch.setattr("apscheduler.triggers.cron.get_localzone", lambda: ZoneInfo("Europe/Berlin"))
    times = upcoming(section("30 0 * * *"), datetime(2026, 10, 24, 12, tzinfo=UTC), days=3)
    assert times == [datetime(2026, 10, day, 0, 30, tzinfo=UTC) for day in (25, 26, 27)]


def test_no_more_rows_than_tell() -> None:
    """A schedule of every minute is written ahead for days, and not for forty of them."""
    times = upcoming(section(every="1m"), WEDNESDAY)
    assert len(times) == MOST_AHEAD
    assert times[-1] - WEDNESDAY > timedelta(days=3)
