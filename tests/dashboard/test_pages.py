"""Every page over a record that is empty, full, and broken, as AppTest sees it."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from streamlit import config
from streamlit.testing.v1 import AppTest

from store import queries, writes
from store.database import open_database
from store.records import MutantRecord, SuiteRecord
from tests.dashboard.conftest import Open, Seeded
from tests.dashboard.facts import HOSTILE, HOSTILE_CASE

PAGES = ("overview", "trends", "compare", "runs", "run", "case", "suites", "health", "settings")


def title(at: AppTest) -> str:
    assert not at.exception, at.exception[0].message
    return _unescaped(at.title[0].value)


def text(at: AppTest) -> str:
    """All markdown and plain text of a page, without the escapes."""
    kinds = (at.markdown, at.caption, at.text, at.code, at.warning)
    return _unescaped("\n".join(str(element.value) for kind in kinds for element in kind))


def _unescaped(markdown: str) -> str:
    return markdown.replace("\\", "").replace("\u2060", "")


# Empty ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("overview", "Nothing has been measured yet"),
        ("trends", "Nothing has been measured yet"),
        ("runs", "No run yet"),
        ("run", "There is no such run"),
        ("case", "There is no such case"),
        ("suites", "No suite is known yet"),
    ],
)
def test_an_empty_record_says_so(page: str, expected: str, open_page: Open, tmp_path: Path) -> None:
    """Every page draws over a record that holds nothing, and its title says that."""
    assert title(open_page(page, f"sqlite:///{tmp_path}/new.db")) == expected


@pytest.mark.parametrize("page", ["overview", "trends", "runs", "suites"])
def test_an_empty_page_says_what_to_type(page: str, open_page: Open, tmp_path: Path) -> None:
    """An empty page names the command that fills it."""
    assert "memtrend run" in [code.value for code in open_page(page, f"sqlite:///{tmp_path}/new.db").code]


def test_the_record_is_made_where_there_is_none(open_page: Open, tmp_path: Path) -> None:
    """Opening the dashboard before anything ran makes the record instead of failing."""
    open_page("overview", f"sqlite:///{tmp_path}/new.db")
    assert (tmp_path / "new.db").exists()


@pytest.mark.parametrize("page", ["run", "case"])
@pytest.mark.parametrize("run", ["0", "-1", "1e3", "٣", str(10**30), "9" * 5000])
def test_a_number_that_names_nothing(page: str, run: str, open_page: Open, tmp_path: Path) -> None:
    """Whatever stands for a run in an address, the page says that there is none."""
    assert title(open_page(page, f"sqlite:///{tmp_path}/new.db", run=run)) == f"There is no such {page}"


def test_a_case_that_is_not_named_is_offered(open_page: Open, seeded: Seeded) -> None:
    """The page of a case without an address leads to the failed cases of the newest whole run."""
    at = open_page("case", seeded.url)
    links = [(link.proto.label, link.proto.query_string) for link in at.get("page_link")]
    assert len(links) == 2
    label, where = links[0]
    run = re.search(r"run (\d+)", label)
    assert run
    assert where == f"run={run[1]}&cases=failed"


# Broken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_a_broken_record_is_said_in_words(page: str, open_page: Open, tmp_path: Path) -> None:
    """A file that is no database gives every page words and a command, and no traceback."""
    (tmp_path / "bad.db").write_text("this is not a database, however long one reads on in it, line by line")
    at = open_page(page, f"sqlite:///{tmp_path}/bad.db")
    assert title(at) == "memtrend cannot read its record"
    assert "bad.db" in text(at)
    assert "memtrend doctor" in [code.value for code in at.code]


def test_a_misspelt_setting_is_said_in_words(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration that cannot be read names the key, never its value."""
    monkeypatch.setenv("MEMTREND_DATABASES__URL", "hush-hush")
    at = open_page("overview", f"sqlite:///{tmp_path}/new.db")
    assert title(at) == "memtrend cannot read its configuration"
    assert "MEMTREND_DATABASES__URL" in text(at)
    assert "hush-hush" not in text(at)


def test_a_mended_record_needs_no_restart(open_page: Open, tmp_path: Path) -> None:
    """Once the file is right, the next page view shows it."""
    (tmp_path / "bad.db").write_text("this is not a database, however long one reads on in it, line by line")
    at = open_page("overview", f"sqlite:///{tmp_path}/bad.db")
    (tmp_path / "bad.db").unlink()
    assert title(at.run()) == "Nothing has been measured yet"


# Seeded ---------------------------------------------------------------------------------------------------


def test_the_overview_tells_what_could_not_be_measured(open_page: Open, seeded: Seeded) -> None:
    """An invalid run is part of the overview's finding, with its reason, and the floors are words, not
    cards."""
    at = open_page("overview", seeded.url)
    assert title(at) == "Two backends got worse, one could not be measured; nothing else changed"
    assert "5 of 14 answers were errors" in text(at)
    assert "floors: nothing" in text(at)
    assert "synthetic starter" in text(at)
    assert [metric.value for metric in at.metric].count("no run") == 1


def test_the_overview_shows_what_runs(open_page: Open, seeded: Seeded) -> None:
    """A run that is going on stands above the cards, with its progress."""
    at = open_page("overview", seeded.url)
    assert f"run {seeded.world.running}" in text(at)
    assert "running: 20 of 29 cases" in text(at)


def test_a_card_leads_to_its_own_trend_and_failures(open_page: Open, seeded: Seeded) -> None:
    """The links of a card name suite and backend, and the run whose failed cases it counts."""
    links = {
        link.proto.query_string: link.proto.label
        for link in open_page("overview", seeded.url).get("page_link")
    }
    assert links["suite=golden&backends=mem0"] == links["suite=contract&backends=notes"] == "Trend"
    run = _newest(seeded, "mem0")
    lost = run.metrics["pass"].n * (1 - run.metrics["pass"].mean)
    assert links[f"run={run.id}&cases=failed"] == f"{round(lost)} fail"


@pytest.mark.parametrize("page", ["overview", "runs"])
@pytest.mark.parametrize("seeded_first", [True, False])
def test_what_went_wrong_is_said(
    page: str, seeded_first: bool, open_page: Open, seeded: Seeded, tmp_path: Path
) -> None:
    """Warnings and errors of the last day are counted and told, newest first; nothing else is."""
    if seeded_first:
        shutil.copy(seeded.path, tmp_path / "copy.db")
    database = open_database(f"sqlite:///{tmp_path}/copy.db")
    with time_machine.travel(datetime.now(UTC) - timedelta(hours=25), tick=False):
        writes.add_event(database, "error", "collector", "long ago")
    for level, message in (("warning", "the fire of <b>03:00</b> was missed"), ("error", "no suite 'x'")):
        writes.add_event(database, level, "schedule:nightly", message)
    writes.add_event(database, "info", "collector", "started")
    database.close()
    at = open_page(page, f"sqlite:///{tmp_path}/copy.db")
    assert any("2 problems in the last 24 hours" in expander.label for expander in at.expander)
    shown = text(at)
    assert shown.index("no suite 'x'") < shown.index("the fire of <b>03:00</b> was missed")
    assert "long ago" not in shown
    assert "started" not in shown


def test_without_problems_nothing_is_said(open_page: Open, seeded: Seeded) -> None:
    """A quiet day has no line about problems."""
    assert not open_page("overview", seeded.url).expander


def test_trends_name_the_cases_that_broke(open_page: Open, seeded: Seeded) -> None:
    """The title counts, by backend, the cases that had passed and fail now."""
    at = open_page("trends", seeded.url)
    assert "mem0 fails" in title(at) or "mem0 fails 3" in title(at)
    assert "cases that it had passed" in title(at)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"suite": "contract"}, "contract"),
        ({"metric": "recall_ms"}, "Recall time on golden: best keyword"),
        ({"metric": "recall@k", "backends": "hybrid"}, "Recall@k on golden: hybrid"),
        ({"metric": "no such"}, "cases that it had passed"),
    ],
)
def test_trends_take_their_filters_from_the_address(
    parameters: dict[str, str], expected: str, open_page: Open, seeded: Seeded
) -> None:
    """A shared link opens with its filters; a value that is unknown falls back."""
    at = open_page("trends", seeded.url, **parameters)
    shown = title(at) + " " + str(at.selectbox[0].value)
    assert expected in shown


def test_every_chart_has_words(open_page: Open, seeded: Seeded) -> None:
    """Charts and images come with their newest values in words."""
    charts = [chart.proto.alt for chart in open_page("trends", seeded.url).get("plotly_chart")]
    assert re.match(r"pass rate of golden: .*hybrid [0-9.]+ % \(n 29\)", charts[0])
    shown = open_page("overview", seeded.url).get("image")
    images = [image.alt for group in shown for image in group.proto.imgs]
    assert len([alt for alt in images if re.match("Pass rate of .+ over 3[0-9] runs: ", alt)]) == 10


def test_trends_draw_panels_for_the_other_metrics(open_page: Open, seeded: Seeded) -> None:
    """Below the main chart stand six small ones, each of which a click draws large, and the rest wait until
    they are asked for."""
    at = open_page("trends", seeded.url)
    assert len(at.get("plotly_chart")) == 1
    assert len(at.get("image")) == 6
    at.button(key="large-mrr").click().run()
    assert at.selectbox(key="metric").value == "mrr"
    assert title(at).startswith("Mrr on golden")
    assert len(at.get("image")) == 6


def test_runs_are_counted_and_paged(open_page: Open, seeded: Seeded) -> None:
    """The table shows twenty of all runs, the newest first."""
    at = open_page("runs", seeded.url)
    database = open_database(seeded.url)
    total = queries.count_runs(database)
    recent = queries.runs(database, since=datetime.now(UTC) - timedelta(hours=20), limit=None)
    database.close()
    looks = [row for row in recent if row.subset]
    counted = f"{13 + len(looks)} of {14 + len(looks)} runs of the last 24 hours count"
    assert title(at) == f"{counted}; three found something worse; one is running"
    assert len(at.dataframe[0].value) == 20
    assert f"1 to 20 of {total}" in text(at)


def test_runs_filter_by_the_address(open_page: Open, seeded: Seeded) -> None:
    """State and backend in the address select the runs."""
    at = open_page("runs", seeded.url, state="invalid", backends="notes")
    assert list(at.dataframe[0].value["run"]) == [seeded.world.invalid_run]


def test_a_run_shows_its_figures_and_cases(open_page: Open, seeded: Seeded) -> None:
    """A whole run tells how many cases passed, its metrics with n, and what the run before had."""
    run = _newest(seeded, "mem0")
    at = open_page("run", seeded.url, run=str(run.id))
    assert " of 29 cases passed" in title(at)
    metrics = at.dataframe[0].value
    assert "pass rate" in list(metrics["metric"])
    assert set(metrics["n"]) == {29}
    assert {"now", "interval", "before", "difference"} <= set(metrics.columns)


def test_a_first_run_compares_with_nothing(open_page: Open, seeded: Seeded) -> None:
    """Columns that compare are hidden on the first run of a series, and shown on a later one."""
    shown = {}
    for run in (_newest(seeded, "mem0"), _newest(seeded, "mem0", nights_ago=35)):
        tables = open_page("run", seeded.url, run=str(run.id)).dataframe
        shown[run.id] = [_hidden(table) for table in tables if "before" in table.value]
    later, first = shown.values()
    assert later == [set(), set(), set()]
    assert first == [{"before", "difference"}, {"before"}, {"before"}]


def _hidden(table: Any) -> set[str]:
    settings = json.loads(table.proto.columns)
    return {name for name, chosen in settings.items() if chosen and chosen.get("hidden")} & {
        "before",
        "difference",
    }


def test_an_invalid_run_says_why(open_page: Open, seeded: Seeded) -> None:
    """A run that does not count gives its reason and shows no figure."""
    at = open_page("run", seeded.url, run=str(seeded.world.invalid_run))
    assert title(at) == "Invalid: 5 of 14 answers were errors, so the run does not count"
    assert "HTTP 429" in text(at)
    assert not at.metric


def test_a_running_run_shows_progress(open_page: Open, seeded: Seeded) -> None:
    """A run's page can be opened while it goes on."""
    at = open_page("run", seeded.url, run=str(seeded.world.running))
    assert title(at) == "Running: 20 of 29 cases are in"


def test_a_case_tells_its_story(open_page: Open, seeded: Seeded) -> None:
    """A lost case shows since when it fails, what was planted, asked, wanted, and what came back."""
    case = seeded.world.broken[0]
    at = open_page("case", seeded.url, suite="golden", case=case, backend="mem0")
    assert title(at).startswith("mem0 fails it since ")
    shown = text(at)
    for piece in ("wanted", "unwanted", "161 memories of the world software", "passed", "failed"):
        assert piece in shown or piece in str([badge.value for badge in at.get("badge")])


def test_a_case_shows_the_run_in_its_address(open_page: Open, seeded: Seeded) -> None:
    """A link to a case in an older run shows that run."""
    run = _newest(seeded, "mem0", nights_ago=2)
    at = open_page("case", seeded.url, suite="golden", case=seeded.world.broken[0], run=str(run.id))
    assert f"run {run.id}" in text(at)


def test_an_error_is_told_as_one(open_page: Open, seeded: Seeded, tmp_path: Path) -> None:
    """A backend that could only err on a case could not answer: neither was it not asked, nor is its answer
    lost."""
    case = seeded.world.broken[0]
    shutil.copy(seeded.path, tmp_path / "copy.db")
    of = """IN (SELECT r.id FROM case_result r JOIN "case" c ON c.id = r.case_id
        JOIN run ON run.id = r.run_id JOIN backend b ON b.id = run.backend_id
        WHERE c.name = ? AND b.name = 'hybrid')"""
    with closing(sqlite3.connect(tmp_path / "copy.db")) as record:
        record.execute(f"UPDATE case_result SET status = 'error' WHERE id {of}", [case])
        for table in ("score", "detail"):
            record.execute(f"DELETE FROM {table} WHERE case_result_id {of}", [case])
        record.commit()
    at = open_page("case", f"sqlite:///{tmp_path}/copy.db", suite="golden", case=case, backend="hybrid")
    assert title(at).startswith("hybrid could not answer (error)")
    beside = open_page("case", f"sqlite:///{tmp_path}/copy.db", suite="golden", case=case, backend="mem0")
    assert "could not answer (error)" in text(beside)
    assert "answer not kept" not in text(beside)


def test_a_suite_shows_versions_and_flaky_cases(open_page: Open, seeded: Seeded) -> None:
    """The suites page tells coverage, versions with their reasons, which cases turn to and fro, and which are
    in quarantine, by whom and why."""
    at = open_page("suites", seeded.url)
    assert title(at).startswith("golden asks 29 cases over 11 tags; ")
    quarantine, flaky, _, versions, cases = (frame.value for frame in at.dataframe)
    assert flaky["case"][0] == seeded.world.flaky
    assert list(versions["cases"]) == ["2 new, 1 changed", "27 new"]
    assert list(versions["why"]) == ["priya: two ambiguous answers made plain", ""]
    assert (quarantine["case"][0], quarantine["owner"][0]) == (seeded.world.flaky, "jonas")
    assert quarantine["reason"][0] == HOSTILE
    assert len(cases) == 29


def test_a_suite_shows_which_faults_it_notices(open_page: Open, tmp_path: Path) -> None:
    """The suites page tells which faults were caught and what they were called, those missed first."""
    url = f"sqlite:///{tmp_path}/faults.db"
    database = open_database(url)
    version = writes.register_suite(database, SuiteRecord("mine", "golden", "own", "v1", 0, ()))
    caught = MutantRecord("forget-no-op", "ignores forget", True, 18, 18, "forgotten yet returned", True)
    missed = MutantRecord("stale-first", "ranks an older fact first", False, 1, 0, None, False)
    writes.record_mutants(database, version, "hybrid", [caught, missed])
    database.close()
    at = open_page("suites", url)
    (table,) = (frame.value for frame in at.dataframe if "fault" in frame.value.columns)
    assert list(table["fault"]) == ["ranks an older fact first", "ignores forget"]
    assert [list(found) for found in table["result"]] == [["missed"], ["caught"]]
    assert list(table["right"]) == ["no", "yes"]
    assert "1 called by their right name" in text(at)


def test_a_suite_shows_what_lint_found(open_page: Open, seeded: Seeded) -> None:
    """The suites page tells each finding, errors first, and how many cases tell a memory from both floors."""
    at = open_page("suites", seeded.url)
    findings = next(frame.value for frame in at.dataframe if "finding" in frame.value)
    assert list(findings["where"]) == ["golden.jsonl:412", "golden.jsonl:77"]
    assert list(findings["level"]) == [["error"], ["warning"]]
    assert findings["finding"][0] == HOSTILE
    assert "83 % of 29 cases tell a memory from both floors" in text(at)
    assert {metric.label: metric.value for metric in at.metric}["Lint"] == "1 error"


def test_a_suite_that_nobody_looked_at_says_so(open_page: Open, seeded: Seeded) -> None:
    """Without a look there are no findings, which is not the same as none found."""
    at = open_page("suites", seeded.url, name="contract")
    assert {metric.label: metric.value for metric in at.metric}["Lint"] == "–"
    assert "the collector has not looked yet" in text(at)


@pytest.mark.parametrize("page", PAGES)
def test_text_from_outside_is_escaped(page: str, open_page: Open, seeded: Seeded) -> None:
    """No page hands markup from a case on as markdown or HTML."""
    run = _newest(seeded, "mem0")
    at = open_page(page, seeded.url, run=str(run.id), suite="golden", case=HOSTILE_CASE)
    assert not at.exception
    assert not any(element.proto.allow_html for element in [*at.markdown, *at.caption])
    for element in [*at.markdown, *at.caption, *at.title]:
        assert not re.search(
            r"(?<!\\)(<|\[link|\*\*bold|\$x)|evil\.example|http://", _outside_code(element.value)
        )


def _outside_code(markdown: str) -> str:
    return re.sub(r"(`+) .*? \1", "", markdown)


def test_nothing_can_be_asked_for_from_afar(open_page: Open, seeded: Seeded) -> None:
    """Where others reach the page, it offers no button that makes something run or stop."""
    config.set_option("server.address", "0.0.0.0")
    at = open_page("runs", seeded.url)
    assert "Read only here" in text(at)
    assert not at.button


def test_asking_from_afar_can_be_allowed(
    open_page: Open, seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration may allow what the address forbids."""
    config.set_option("server.address", "0.0.0.0")
    monkeypatch.setenv("MEMTREND_DASHBOARD__WRITES", "true")
    assert "Ask the collector" in [button.label for button in open_page("runs", seeded.url).button]


def test_cancel_asks_the_runner_to_stop(open_page: Open, seeded: Seeded, tmp_path: Path) -> None:
    """Cancel marks the run; the page then says that it stops, and offers the button no more."""
    shutil.copy(seeded.path, tmp_path / "copy.db")
    at = open_page("runs", f"sqlite:///{tmp_path}/copy.db")
    at.button(key=f"cancel-{seeded.world.running}").click().run()
    database = open_database(f"sqlite:///{tmp_path}/copy.db")
    assert seeded.world.running is not None
    assert queries.is_cancelled(database, seeded.world.running)
    database.close()
    assert "stops before its next scenario" in text(at)


def _newest(seeded: Seeded, backend: str, nights_ago: int = 0) -> queries.RunRow:
    database = open_database(seeded.url)
    rows = queries.runs(database, suites=["golden"], backends=[backend], statuses=["whole"], limit=None)
    database.close()
    return [row for row in rows if not row.subset][nights_ago]


@pytest.mark.parametrize(
    ("page", "key", "opened"),
    [
        ("runs", "open-run", ("run", "run")),
        ("run", "open-case", ("case", "case")),
        ("suites", "open-case", ("case", "case")),
    ],
)
def test_rows_open_without_a_pointer(
    open_page: Open,
    seeded: Seeded,
    monkeypatch: pytest.MonkeyPatch,
    page: str,
    key: str,
    opened: tuple[str, str],
) -> None:
    """In a table each arrow key is a click, so a list beneath it opens the rows for who has a keyboard
    alone."""
    went: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr("dashboard.navigation.go", lambda page, **told: went.append((page, told)))
    run = {"run": str(seeded.world.invalid_run)} if page == "run" else {}
    at = open_page(page, seeded.url, **run)
    ways = at.selectbox(key=key)
    assert len(ways.options) > 1
    ways.select_index(1).run()
    assert not at.exception
    where, parameter = opened
    assert went[0][0] == where
    assert str(went[0][1][parameter]) in ways.options[1]
