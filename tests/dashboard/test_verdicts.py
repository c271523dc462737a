"""Verdicts on the pages: badges, the two questions of a run, and what people decide about a baseline."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from store import queries
from store.baselines import Decision
from store.database import open_database
from store.queries import RunRow
from tests.dashboard.conftest import Open, Seeded

REASON = "moved to <b>2.2.1</b> *for* good"


def run_of(seeded: Seeded, backend: str, suite: str = "golden", nights_ago: int = 0) -> RunRow:
    database = open_database(seeded.url)
    rows = queries.runs(database, suites=[suite], backends=[backend], statuses=["whole"], limit=None)
    database.close()
    return [row for row in rows if not row.subset][nights_ago]


def text(at: AppTest) -> str:
    assert not at.exception, at.exception[0].message
    kinds = (at.title, at.markdown, at.caption)
    shown = "\n".join(str(element.value) for kind in kinds for element in kind)
    return shown.replace("\\", "").replace("\u2060", "")


def decisions(url: str) -> list[Decision]:
    database = open_database(url)
    found = queries.baseline_decisions(database, "golden", "mem0")
    database.close()
    return found


# Badges


def test_cards_have_badges_where_there_is_news(open_page: Open, seeded: Seeded) -> None:
    """A card that got worse says so in a coloured word with an icon; one at rest says it in grey, with what
    could not have been seen and how it stands beside the plain vector store."""
    at = open_page("overview", seeded.url)
    shown = text(at)
    assert ":red-badge[:material/trending_down: Worse]" in shown
    assert ":orange-badge[:material/water_drop: Slow leak]" in shown
    assert [caption.value for caption in at.caption].count("No change seen") == 6
    assert "badge[No change seen" not in shown
    assert "would have missed drops under" in shown
    assert shown.count("the reference") == 2
    assert "beats dense" in shown


def test_the_list_of_runs_has_verdicts(open_page: Open, seeded: Seeded) -> None:
    """A row says what is said of its run, in the colour that the word has elsewhere, and what turned."""
    table = open_page("runs", seeded.url, backends="mem0").dataframe[0]
    first = table.value.set_index("run").loc[run_of(seeded, "mem0").id]
    assert (list(first["state"]), first["turned"]) == (["↘ Worse"], "3 lost")
    options = json.loads(table.proto.columns)["state"]["type_config"]["options"]
    colours = {option["value"]: option["color"] for option in options}
    assert colours["↘ Worse"] == "red"
    assert colours["invalid"] == "violet"


def test_the_title_of_trends_follows_the_verdict_in_force(
    open_page: Open, seeded: Seeded, tmp_path: Path
) -> None:
    """A backend that got better is not told by the cases that it lost, nor asked how much worse it is."""
    run = run_of(seeded, "mem0")
    shutil.copy(seeded.path, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as record:
        record.execute(
            "UPDATE verdict SET verdict = 'better', content = json_set(content, '$.verdict', 'better') "
            "WHERE run_id = ?", [run.id],
        )  # fmt: skip
        record.commit()
    at = open_page("trends", f"sqlite:///{tmp_path}/copy.db", suite="golden", backends="mem0")
    assert text(at)
    assert at.title[0].value.replace("\\", "") == "mem0 got better, 3 lost"
    shown = text(open_page("run", f"sqlite:///{tmp_path}/copy.db", run=str(run.id)))
    assert "How much, for questions like these?" in shown


# A run


def test_a_run_that_is_worse_answers_two_questions(open_page: Open, seeded: Seeded) -> None:
    """Did it change, with the evidence in a sentence; how much worse, with interval, n, the lost cases as
    links, and the package that is suspected first."""
    run = run_of(seeded, "mem0")
    at = open_page("run", seeded.url, run=str(run.id))
    shown = text(at)
    assert "cases passed: worse, 3 lost compared with 10 earlier nights" in shown
    assert "3 of 29 cases that had passed in 10 nights failed in at least 6 of 7 trials." in shown
    assert "How much worse for questions like these?" in shown
    assert "points" in next(metric.value for metric in at.metric if metric.label == "Difference")
    assert "likeliest cause first:] **mem0ai 2.1.0 → 2.2.1" in shown
    links = [link.proto.query_string for link in at.get("page_link") if "case=" in link.proto.query_string]
    assert [f"case={case}" in link for case, link in zip(sorted(seeded.world.broken), links, strict=True)]
    assert all(f"run={run.id}" in link for link in links)


def test_the_suspects_are_of_the_first_bad_night(open_page: Open, seeded: Seeded) -> None:
    """Ten nights on, what changed is still told between the last good run and the first bad one."""
    nights = len(seeded.world.nights)
    bad = run_of(seeded, "mem0", nights_ago=nights - 1 - nights * 2 // 3)
    good = run_of(seeded, "mem0", nights_ago=nights - nights * 2 // 3)
    shown = text(open_page("run", seeded.url, run=str(run_of(seeded, "mem0", nights_ago=1).id)))
    assert f"Changed from run {good.id} to {bad.id}" in shown


def test_a_quiet_run_says_what_it_could_not_have_seen(open_page: Open, seeded: Seeded) -> None:
    """No change is grey, and comes with its blind spot; nothing is suspected."""
    shown = text(open_page("run", seeded.url, run=str(run_of(seeded, "hybrid").id)))
    assert "no change seen compared with 10 earlier nights" in shown
    assert "could have gone unseen" in shown
    assert "likeliest cause" not in shown


def test_a_look_leads_to_what_came_of_it(open_page: Open, seeded: Seeded) -> None:
    """A run that only asked again names the run whose verdict it served."""
    database = open_database(seeded.url)
    look = next(row for row in queries.runs(database, backends=["mem0"], limit=40) if row.subset)
    database.close()
    about = look.trigger.partition(":")[2]
    at = open_page("run", seeded.url, run=str(look.id))
    assert f"Run {about}" in [button.label for button in at.button]


# Decisions


@pytest.mark.parametrize(("action", "label"), [("pin", "Pin as anchor"), ("intended", "Intended change")])
def test_a_decision_is_written_with_its_reason(
    action: str, label: str, open_page: Open, seeded: Seeded, tmp_path: Path
) -> None:
    """A reason given on the page is kept with run and author, is an event, and is told on the page as it was
    typed."""
    shutil.copy(seeded.path, tmp_path / "copy.db")
    url = f"sqlite:///{tmp_path}/copy.db"
    run = run_of(seeded, "mem0")
    at = open_page("run", url, run=str(run.id))
    at.text_input(key=f"reason-{action}").input(REASON)
    next(button for button in at.button if button.label == label).click().run()
    (made,) = decisions(url)
    assert (made.action, made.run_ids, made.reason, made.author) == (action, (run.id,), REASON, "local")
    database = open_database(url)
    (event,) = [row for row in queries.events(database, 20) if row.source == "baseline"]
    database.close()
    assert REASON in event.message
    assert REASON in text(at)
    assert "<b>" not in "".join(str(element.value).replace("\\<", "") for element in at.markdown)


def test_a_blank_reason_is_refused(open_page: Open, seeded: Seeded, tmp_path: Path) -> None:
    """Without a reason nothing is written, and the page says what is missing."""
    shutil.copy(seeded.path, tmp_path / "copy.db")
    url = f"sqlite:///{tmp_path}/copy.db"
    at = open_page("run", url, run=str(run_of(seeded, "mem0").id))
    at.text_input(key="reason-pin").input("   ")
    next(button for button in at.button if button.label == "Pin as anchor").click().run()
    assert decisions(url) == []
    assert "needs a reason" in at.toast[0].value


def test_nothing_is_decided_from_afar(open_page: Open, seeded: Seeded) -> None:
    """Where others reach the page, it offers no decision."""
    config.set_option("server.address", "0.0.0.0")
    at = open_page("run", seeded.url, run=str(run_of(seeded, "mem0").id))
    assert not at.text_input
    assert not at.button
