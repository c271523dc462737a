"""The story of the demo, on the record that `memtrend demo --once` has built: a month in which one release of
a package breaks three cases, told by nothing but the real path."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
import pytest

from collectors.demo import folder as demo
from collectors.demo import story
from store import queries
from store.database import Database, open_database
from store.queries import AlertRow, RunRow
from tests.collectors.slack_server import problems
from tests.demo_record import BUILD_S, DEMO
from tests.waiting import until

pytestmark = pytest.mark.timeout(BUILD_S + 60)

BROKEN = {"housings-a-week-later/1", "housings-a-week-later/2", "personal-amend-keeps-session"}
NIGHTLY = (demo.ASSISTANT, demo.STEADY, "dense")
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def record(demo_folder: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{demo_folder / demo.RECORD}")) as db:
        yield db


@pytest.fixture(scope="module")
def told(demo_folder: Path) -> Mapping[str, Any]:
    return demo.read_story(demo_folder)


@pytest.fixture(scope="module")
def first(told: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(told["nights"][0])


@pytest.fixture(scope="module")
def alert(record: Database) -> AlertRow:
    """The one that there is."""
    (row,) = [row for row in queries.alerts(record, limit=None) if not row.incident.drill]
    return row


def night_of(at: datetime, first: datetime) -> int:
    """1 for the first one, which lasts from its runs to the next one's."""
    return (at - first) // timedelta(days=1) + 1


def nightly(record: Database, backend: str) -> list[RunRow]:
    """The runs of the schedule, oldest first."""
    found = queries.runs(record, backends=[backend], statuses=["whole"], limit=None)
    return [run for run in reversed(found) if run.trigger.startswith("schedule:")]


def messages(demo_folder: Path) -> list[dict[str, Any]]:
    """What Slack's stand-in took, in order."""
    return [json.loads(line) for line in (demo_folder / demo.MESSAGES).read_text().splitlines()]


def words(message: Mapping[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


@pytest.mark.parametrize("backend", NIGHTLY)
def test_every_night_has_its_run(record: Database, first: datetime, backend: str):
    """Each of the thirty nights that end last night has one whole run of thirty cases, at its time."""
    runs = nightly(record, backend)
    assert [night_of(run.started_at, first) for run in runs] == list(range(1, story.NIGHTS + 1))
    assert {(run.suite, run.cases_total) for run in runs} == {(demo.SUITE, 30)}
    assert all(run.started_at - first - (n * 24 * HOUR) < HOUR for n, run in enumerate(runs))
    assert datetime.now(UTC) - runs[-1].started_at < timedelta(hours=31)


@pytest.mark.parametrize("backend", ["nothing", "everything"])
def test_the_floors_were_measured(record: Database, backend: str):
    """Both floors have runs, and no real backend is near them."""
    floor = max(run.metrics["pass"].mean for run in nightly(record, backend))
    assert floor < 0.3 < min(run.metrics["pass"].mean for each in NIGHTLY for run in nightly(record, each))


def test_the_assistant_has_unsure_cases(record: Database):
    """The suite is noisy on the assistant before anything is wrong with it, and never on the other."""
    before = [run.metrics["pass"].mean for run in nightly(record, demo.ASSISTANT)[: story.BAD_NIGHT - 1]]
    assert len(set(before)) >= 3
    assert len({run.metrics["pass"].mean for run in nightly(record, demo.STEADY)}) == 1


def test_one_alert(record: Database, alert: AlertRow, first: datetime):
    """All month there is one alert, not even a suspicion beside it: of the night of the upgrade, after three
    looks, the last one hours later."""
    (bad,) = [run for run in nightly(record, demo.ASSISTANT) if run.id == alert.first_bad_run_id]
    assert night_of(bad.started_at, first) == story.BAD_NIGHT
    steps = {step.action: step for step in queries.alert_steps(record, alert.id)}
    assert night_of(steps["suspected"].at, first) == night_of(steps["opened"].at, first) == story.BAD_NIGHT
    assert steps["opened"].at - steps["suspected"].at > 2 * HOUR
    assert alert.incident.signals[0].key == ("regression", demo.SUITE, demo.ASSISTANT, "")
    verdict = queries.verdict(record, bad.id)
    assert verdict is not None
    assert [look["trials"] for look in verdict.content["looks"]] == [1, 3, 3]


def test_what_it_names(record: Database, alert: AlertRow):
    """The alert names the package first of what it suspects, the three cases, and how they were lost."""
    suspect = alert.incident.suspects[0]
    assert (suspect["name"], suspect["old"], suspect["new"]) == (demo.PACKAGE, demo.GOOD, demo.BAD)
    (signal_,) = alert.incident.signals
    assert set(signal_.cases) == BROKEN
    assert alert.incident.context["failures"] == {"superseded returned": 3}


def test_its_life(record: Database, alert: AlertRow, first: datetime):
    """A person has it on the day it opened, and it is resolved by the second good night after the mending."""
    steps = queries.alert_steps(record, alert.id)
    assert [(step.action, step.author) for step in steps] == [
        ("suspected", "memtrend"),
        ("opened", "memtrend"),
        ("acknowledged", story.PERSON),
        ("resolved", "memtrend"),
        ("judged", story.PERSON),
    ]
    nights = [night_of(step.at, first) for step in steps]
    assert nights == [story.BAD_NIGHT] * 3 + [story.MENDED_NIGHT + 1] * 2
    assert (alert.incident.state, alert.incident.judged) == ("resolved", "real")
    assert alert.closed_at == steps[3].at


def test_slack_heard_it_once(demo_folder: Path, record: Database, alert: AlertRow, first: datetime):
    """Slack took one message when it opened, with package, cases and failure kind, one when a person took it,
    one when it was over, and none in the nights between; each is as Slack's rules have it."""
    opened, acknowledged, resolved = (
        one for one in messages(demo_folder) if f"alert {alert.id} step" in one["text"]
    )
    assert f"{demo.PACKAGE} {demo.GOOD} → {demo.BAD}" in words(opened)
    assert all(case in words(opened) for case in BROKEN)
    assert "superseded returned" in words(opened)
    assert "3 of 30 cases that had passed in 10 nights" in opened["text"]
    assert acknowledged["text"].startswith("Acknowledged")
    assert story.PERSON in words(acknowledged)
    assert resolved["text"].startswith("Resolved")
    assert [problems(json.dumps(one).encode()) for one in messages(demo_folder)] == [[]] * 4
    sent = [one for one in reversed(queries.deliveries(record)) if one.alert_id == alert.id]
    assert [(one.state, one.status, one.attempts) for one in sent] == [("sent", 200, 1)] * 3
    assert [night_of(one.sent_at, first) for one in sent if one.sent_at] == [20, 20, 26]


def test_a_drill_arrived(demo_folder: Path, record: Database):
    """The month has a proof that somebody would be told, and its message says that it is a drill."""
    (proof,) = queries.proofs(record)
    assert proof.passed
    assert messages(demo_folder)[-1]["text"].startswith("DRILL")


def test_gates(record: Database, told: Mapping[str, Any]):
    """`memtrend gate` refuses the commit with the upgrade, for the change, and passes its mending."""
    assert told["gates"] == {story.BAD_COMMIT: 1, story.MENDED_COMMIT: 0}
    runs = {run.meta["commit"]: run for run in queries.runs(record, limit=None) if "commit" in run.meta}
    verdicts = {commit: queries.verdict(record, run.id) for commit, run in runs.items()}
    failed = {commit: row.content["gate"]["failed"] for commit, row in verdicts.items() if row}
    assert failed == {story.BAD_COMMIT: ["change"], story.MENDED_COMMIT: []}


def test_what_is_sent_around(demo_folder: Path, told: Mapping[str, Any]):
    """The bad night's report and the comparison of both backends are written as pages by the commands, and
    each names what it is about."""
    assert (told["report"], told["compare"] in (0, 3)) == (0, True)
    assert all(case in (demo_folder / demo.REPORTED).read_text() for case in BROKEN)
    compared = (demo_folder / demo.COMPARED).read_text()
    assert demo.ASSISTANT in compared
    assert demo.STEADY in compared


def test_deploys_are_drawn(record: Database, first: datetime):
    """Each deploy and upgrade is a mark of its kind on the evening before the night that it bears on."""
    drawn = {mark.text: (mark.kind, night_of(mark.at, first) + 1) for mark in queries.marks(record)}
    assert drawn == {
        **{text: ("deploy", night) for night, text in story.DEPLOYS.items()},
        f"{demo.PACKAGE} {demo.BAD}": ("upgrade", story.BAD_NIGHT),
        f"{demo.PACKAGE} {demo.MENDED}": ("upgrade", story.MENDED_NIGHT),
    }


def test_nothing_went_wrong_in_building(record: Database):
    """No event of the month tells of an error, no fire was missed or late, and no run failed."""
    assert [event.message for event in queries.events(record) if event.level == "error"] == []
    last = nightly(record, demo.STEADY)[-1].started_at
    calendar = queries.schedule_calendar(record, last - timedelta(days=40), last)
    assert {fire.state for fire in calendar} == {"done"}
    assert {run.status for run in queries.runs(record, limit=None)} == {"whole"}


def test_nothing_is_left_running(demo_folder: Path):
    """When it is built, no process of it lives, and nothing of the building lies beside the demo."""
    there = [line for process in psutil.process_iter(["cmdline"]) for line in process.info["cmdline"] or ()]
    assert [line for line in there if ".memtrend-demo-" in line] == []
    assert list(demo_folder.parent.glob(".memtrend-demo-*")) == []
    assert not (demo_folder / "said.txt").exists()


# The command


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=60, **options)


def test_what_was_built_is_told_again(demo_folder: Path):
    """`--once` on a demo that is there builds nothing anew, and says how to look at it."""
    before = (demo_folder / demo.STORY).stat().st_mtime_ns
    done = run("--once", "--dir", str(demo_folder))
    assert done.returncode == 0
    assert f"memtrend demo --dir {demo_folder}" in done.stdout
    assert (demo_folder / demo.STORY).stat().st_mtime_ns == before


def test_no_folder_of_others_is_taken(tmp_path: Path):
    """A folder that holds something else is refused by its name, and left as it was."""
    (tmp_path / "letter.txt").write_text("Dear Ilse")
    done = run("--once", "--dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert str(tmp_path) in done.stderr
    assert "--dir" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _healthz(port: int) -> dict[str, Any] | None:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        found: dict[str, Any] = json.load(connection.getresponse())
        return found
    except OSError:
        return None
    finally:
        connection.close()


def test_it_is_shown(demo_folder: Path, tmp_path: Path):
    """`memtrend demo` on one that is there serves its dashboard with a collector beside it, which runs no
    suite by itself, whatever other record the environment names; TERM ends all of it."""
    copy, port = tmp_path / "copy", _port()
    shutil.copytree(demo_folder, copy)
    elsewhere = {"PATH": "/usr/bin:/bin", "MEMTREND_DATABASE__URL": f"sqlite:///{tmp_path / 'other.db'}"}
    command = [*DEMO, "--dir", str(copy), "--port", str(port)]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(command, env=elsewhere, stdout=said, stderr=said)
    try:
        until(lambda: (_healthz(port) or {}).get("collector_alive"), (tmp_path / "said").read_text, 120)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
    assert not any(child.is_running() for child in children)
    assert not (tmp_path / "other.db").exists()
    with closing(open_database(f"sqlite:///{copy / demo.RECORD}")) as db:
        assert all(run.trigger != "first" for run in queries.runs(db, limit=None))
