"""The benchmarks run and say what they promise to say; how fast anything is, is not tested here."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from benchmarks.figures import alarms, year
from benchmarks.measure import Bar
from store import models as m
from store import queries
from store.database import open_database
from store.metrics import METRIC_NAMES
from store.rollups import roll_up

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
PUBLISHED = ROOT.parent / "shared" / "data" / "locomo" / "locomo10.json"

TALK = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Ines",
        "speaker_b": "Tarek",
        "session_1_date_time": "9:05 am on 3 March, 2024",
        "session_1": [
            {"speaker": "Ines", "dia_id": "D1:1", "text": "The kiln arrives on Thursday."},
            {"speaker": "Tarek", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a glazed bowl"},
        ],
        "session_10_date_time": "7:30 pm on 2 May, 2024",
        "session_10": [{"speaker": "Tarek", "dia_id": "D10:1", "text": "I sold the bicycle."}],
        "session_11_date_time": "8:00 pm on 3 May, 2024",
    },
    "qa": [
        {"question": "When does the kiln come?", "answer": "Thursday", "evidence": ["D1:01"], "category": 4},
        {"question": "bowl bicycle", "answer": 2, "evidence": ["D1:2; D:10:1"], "category": 1},
        {"question": "And the boat?", "answer": "", "evidence": ["D9:9", "D"], "category": 3},
    ],
}


@pytest.fixture
def talk(tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([TALK]))
    return path


def run(script, *arguments):
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def bars(done):
    """The bars of a script's one JSON document; the exit code says whether all are met."""
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert list(document) == ["bars"]
    found = document["bars"]
    for bar in found.values():
        assert set(bar) == {"value", "target", "met"}
        assert isinstance(bar["value"], int | float)
        assert bar["met"] is (bar["value"] <= bar["target"])
    assert (done.returncode == 0) is all(bar["met"] for bar in found.values())
    return found


def test_locomo_tells_its_bars(talk):
    """The benchmark of the runner prints its ratio and its memory, each beside its bar."""
    found = bars(run("locomo.py", talk, "--pairs", 1, "--json"))
    assert {name: bar["target"] for name, bar in found.items()} == {
        "run_cpu_over_bare_loop": 2.0,
        "peak_rss_mb": 400,
    }


def test_startup_tells_its_bars():
    """The benchmark of starting prints both times, and that the import loads no package."""
    found = bars(run("startup.py", "--times", 1, "--json"))
    targets = {"import_seconds": 0.3, "import_loads_packages": 0, "help_seconds": 0.6}
    assert {name: bar["target"] for name, bar in found.items()} == targets
    assert found["import_loads_packages"]["value"] == 0


def test_writes_tells_its_bars():
    """The benchmark of the record prints its ratio and its bytes, each beside its bar."""
    found = bars(run("writes.py", "--rows", 2000, "--pairs", 1, "--json"))
    assert {name: bar["target"] for name, bar in found.items()} == {
        "store_cpu_over_core": 1.5,
        "bytes_per_case_result": 250,
    }


def test_mutants_play_a_suite():
    """The benchmark of the mutants plays a shipped suite in a process of its own, and tells what it took."""
    told = json.loads(run("mutants.py", "--play", "smoke").stdout)
    assert told["cases"] >= 20
    assert told["plants"] <= 300
    assert told["seconds"] > 0


def test_lint_tells_its_bars():
    """The benchmark of lint prints its seconds for many cases and for one endless pattern, found once."""
    found = bars(run("lint.py", "--cases", 60, "--times", 1, "--json"))
    targets = {"lint_seconds": 2.0, "pattern_seconds": 1.0, "pattern_findings": 1}
    assert {name: bar["target"] for name, bar in found.items()} == targets
    assert found["pattern_findings"]["value"] == 1


def test_detection_tells_its_bars():
    """However few the cases: a closed run in milliseconds, and one fall in one alert."""
    found = bars(run("detection.py", "--cases", 60, "--json"))
    assert found.keys() == {"ms_of_a_closed_run", "alerts_of_one_fall"}
    assert found["alerts_of_one_fall"]["met"]


def test_a_bar_has_a_side():
    """A figure at its target meets the bar; beyond it, only on the side that the bar is open to."""
    assert [Bar("at most", value, 2).met for value in (1, 2, 3)] == [True, True, False]
    assert [Bar("at least", value, 2, at_least=True).met for value in (1, 2, 3)] == [False, True, True]
    assert Bar("power", 0.8, 0.9, at_least=True).told == "power: 0.8 (at least 0.9): MISSED"


def test_statistics_tells_its_bars():
    """A part of the figures of the statistics prints its bars alone, as the other benchmarks do."""
    done = run("statistics.py", "--only", "speed", "--quick", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert {"value", "target", "met"} == set(next(iter(json.loads(done.stdout)["bars"].values())))


def test_alarms_have_a_bar_for_every_cell_but_the_printed():
    """False alarms may be at most so many, power must be at least so much; what is printed has no bar."""
    cells = [((20, mood.name), {"ours": 0.02}) for mood in alarms.MOODS]
    power = [((cases, 10, what), {"ours": 0.94}) for cases in (20, 30) for what in alarms.CHANGES]
    bars = alarms.bars({"false_alarms": cells, "power": power})
    assert [(bar.target, bar.at_least) for bar in bars] == [
        *[(0.03, False), *[(0.1, False)] * 4],
        *[(0.95, True), (0.9, True)],
    ]
    assert [bar.met for bar in bars] == [*[True] * 5, False, True]


def test_a_history_is_the_same_twice():
    """A simulated history is drawn from its own seed, and tells every rule's alarm."""
    found = alarms.history(20, alarms.MOODS[0], 7)
    assert found == alarms.history(20, alarms.MOODS[0], 7)
    assert set(found) == {"ours", "correlated", *alarms.PEERS}
    assert found["-3 points"]


def test_a_night_of_change_is_seen_by_who_knows():
    """The test that knows the truth sees nine stable cases of 180 break, and so do our three looks."""
    found = alarms.night_of_change(180, 10, alarms.CHANGES[0], 7)
    assert found["knowing"]
    assert found["ours"]


def test_locomo_reads_citations_as_they_are_meant(talk):
    """Evidence is found through leading zeros, several ids in one text and ids that do not exist; a date
    without a session plants nothing."""
    did = json.loads(run("locomo.py", talk, "--side", "run").stdout)["did"]
    assert did == "3 plants, 3 probes, recall@10 1.000"


def test_both_sides_do_the_same(talk):
    """The bare loop plants and asks as often as the run that it is compared with."""
    sides = [json.loads(run("locomo.py", talk, "--side", side).stdout)["did"] for side in ("run", "bare")]
    assert sides[0].startswith(sides[1])


def test_locomo_asks_for_its_data(tmp_path):
    """Without its file the benchmark names what is missing, and measures nothing."""
    done = run("locomo.py", tmp_path / "nowhere.json")
    assert done.returncode == 2
    assert "nowhere.json is not there" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="needs ../shared/data/locomo/locomo10.json")
def test_locomo_is_read_whole():
    """All turns of the ten published conversations are planted and all questions asked."""
    assert json.loads(run("locomo.py", "--side", "bare").stdout)["did"] == "5882 plants, 1986 probes"


def test_readme_names_every_script():
    """The table of figures has a row for each script, and names no script that is not there."""
    told = (BENCHMARKS / "README.md").read_text()
    scripts = {path.name for path in BENCHMARKS.glob("*.py")} - {"measure.py"}
    assert set(re.findall(r"(\w+\.py)", told)) - {"measure.py"} == scripts


SMALL = ("--nights", 12, "--backends", 6, "--cases", 60, "--times", 1)


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A year of twelve nights, made by the benchmark of the database."""
    return tmp_path_factory.mktemp("year") / "record.db"


def test_database_tells_its_bars(record):
    """The benchmark of a large record makes it, prints a bar for each question and each page, and leaves no
    run of its own in it."""
    found = bars(run("database.py", "--record", record, *SMALL, "--json"))
    questions = {
        "trends_ms": 50,
        "run_cases_ms": 5,
        "case_history_ms": 10,
        "open_ms": 50,
        "close_run_ms": 100,
    }
    pages = ("overview", "trends", "runs", "run", "case", "health", "suites")
    targets = {name: bar["target"] for name, bar in found.items()}
    assert targets == questions | {f"{page}_page_s": 1.0 for page in pages}
    with closing(sqlite3.connect(record)) as connection:
        assert connection.execute("SELECT count(*) FROM case_result").fetchone() == (12 * 6 * 60,)


@pytest.mark.parametrize("run_id", [5, 97])
def test_a_made_up_year_has_the_rollups_of_the_product(run_id, tmp_path):
    """What is inserted in bulk is what the runner would have written: metrics, tags, n and means."""
    db = open_database(f"sqlite:///{tmp_path / 'record.db'}")
    year.make(db, year.Size(6, 6, 60))
    found = queries.case_scores(db, run_id), queries.scenario_stats(db, run_id)
    expected = {(row.metric, row.tag): (row.n, pytest.approx(row.mean)) for row in roll_up(*found)}
    with db.read() as connection:
        rows = connection.execute(sa.select(m.rollup).where(m.rollup.c.run_id == run_id)).all()
    db.close()
    assert {(METRIC_NAMES[row.metric_id], row.tag): (row.n, row.mean) for row in rows} == expected
    assert len(expected) > 40
