"""Compare: which sides it takes, what it says, and what it says where it cannot."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import compare_tables, compared, report
from store import comparison_words, queries, writes
from store.comparisons import TRIALS, Comparison, taken
from store.database import open_database
from store.sides import side
from tests.dashboard.alarmed import Alarmed
from tests.dashboard.comparing import asked, comparison, turned
from tests.dashboard.conftest import Open, Seeded
from tests.dashboard.facts import HOSTILE, HOSTILE_CASE
from tests.dashboard.test_pages import text, title

SIDES = {"suite": "golden", "a": "mem0", "b": "hybrid"}


def record(tmp_path: Path, *runs: dict) -> str:
    url = f"sqlite:///{tmp_path}/record.db"
    with closing(open_database(url)) as db:
        for run in runs:
            asked(db, **run)
    return url


def codes(at: AppTest) -> list[str]:
    return [code.value for code in at.code]


def chosen(at: AppTest) -> tuple[str | None, str | None]:
    return at.selectbox(key="side-a").value, at.selectbox(key="side-b").value


def of_record(seeded: Seeded, a: str = "mem0", b: str = "hybrid") -> Comparison:
    with closing(open_database(seeded.url)) as db:
        rows = [taken(queries.side_runs(db, "golden", side(one)), TRIALS) for one in (a, b)]
        ids = [tuple(row.id for row in own) for own in rows]
        return queries.comparison(db, "golden", *ids, names=(a, b), with_texts=True)


# An answer ------------------------------------------------------------------------------------------------


def test_the_title_is_the_answer(open_page: Open, seeded: Seeded) -> None:
    """Title, badge, evidence and the sentence for who is no statistician are those of the comparison, and
    both figures have words for who does not see them."""
    at, c = open_page("compare", seeded.url, **SIDES), of_record(seeded)
    assert title(at) == comparison_words.title(c)
    told = text(at)
    for sentence in (
        comparison_words.verdict(c), comparison_words.evidence(c), comparison_words.sure(c),
        comparison_words.blind_spot(c), *comparison_words.dropped(c), *c.warnings,
    ):  # fmt: skip
        assert sentence in told
    assert "Same in both: 3 packages, Python 3.11.7" in told
    assert {"forest", "latency"} <= {chart.proto.id.rpartition("-")[2] for chart in at.get("plotly_chart")}


def test_what_was_lost_stands_with_both_answers(open_page: Open, seeded: Seeded) -> None:
    """A row a case that turned: what each side said first, how often it passed, and why it was lost."""
    frame, c = open_page("compare", seeded.url, **SIDES).dataframe[0].value, of_record(seeded)
    assert len(frame) == len(c.lost) + len(c.gained) > 0
    one = c.gained[0]
    row = frame[frame["case"] == one.case].iloc[0]
    assert (row["a_hit"], row["b_hit"], row["failure"]) == (one.a_hit, one.b_hit, one.failure)
    assert (row["a_passed"], row["b_passed"]) == (f"0/{one.a_trials}", f"{one.b_passes}/{one.b_trials}")


def test_numbers_are_a_click_away(open_page: Open, seeded: Seeded) -> None:
    """Method, seed, level, margin, n, what was dropped and the runs stand behind a button."""
    at = open_page("compare", seeded.url, **SIDES)
    assert "Method" not in str([table.value for table in at.table])
    at.session_state["numbers"] = True
    told = str([table.value.to_dict() for table in at.run().table])
    for name in ("Method", "Seed", "90 % interval", "Margin", "Trials", "Runs of A", "dropped"):
        assert name in told


def test_text_from_a_memory_stays_text(open_page: Open, seeded: Seeded) -> None:
    """Names, questions and answers that try to be markup are shown as they are, in cells; nothing of a page
    is HTML."""
    at = open_page("compare", seeded.url, suite="golden", a="keyword", b="hybrid")
    assert HOSTILE_CASE in set(at.dataframe[0].value["case"])
    assert any(HOSTILE[:24] in str(cell) for cell in at.dataframe[0].value["asked"])
    at.session_state["turned-list"] = True
    at.run()
    labels = [link.proto.label for link in at.get("page_link")]
    assert not any("<b>name" in label for label in labels)
    assert not any(element.allow_html for element in at.markdown)


def test_the_margin_is_in_the_address(open_page: Open, seeded: Seeded) -> None:
    """A link with a margin is answered by it."""
    at = open_page("compare", seeded.url, **SIDES, margin="12.5")
    assert at.number_input(key="margin").value == 12.5
    assert any("--margin 0.125" in code for code in codes(at))


def test_one_trial_confirms_nothing(open_page: Open, tmp_path: Path) -> None:
    """Two runs of one trial are compared, and what turned is marked as less sure."""
    url = record(
        tmp_path, {"backend": "mem0", "trials": 1}, {"backend": "hybrid", "trials": 1, "lost": ("a",)}
    )
    at = open_page("compare", url, **SIDES)
    assert list(at.dataframe[0].value["change"]) == [["lost?"]]
    assert "No loss is confirmed" in text(at)
    assert "not confirmed · 1 trial" in text(at)


def test_a_critical_case_that_is_lost_decides(open_page: Open, tmp_path: Path) -> None:
    """However many others were gained."""
    cases, critical = tuple("abcdefgh"), ("a",)
    url = record(
        tmp_path,
        {"backend": "mem0", "cases": cases, "critical": critical, "lost": ("d", "e", "f")},
        {"backend": "hybrid", "cases": cases, "critical": critical, "lost": ("a",)},
    )
    at = open_page("compare", url, **SIDES)
    assert title(at).endswith("1 critical case would be lost")
    assert "Worse" in text(at)


# Sides ----------------------------------------------------------------------------------------------------


def test_whatever_is_offered_can_be_compared(seeded: Seeded) -> None:
    """Every choice names runs of its backend, as the grammar of sides reads it: backends, releases, days,
    runs, and what lies before and after a mark, whatever its text."""
    with closing(open_database(seeded.url)) as db:
        offered = queries.side_choices(db, "golden")
        for one in offered:
            rows = queries.side_runs(db, "golden", side(one.text))
            assert {row.backend for row in rows} == {one.backend}, one.text
    assert {one.kind for one in offered} == {"newest", "release", "before", "after", "day", "run"}
    assert len({one.text for one in offered}) == len(offered)


def test_a_mark_with_runs_on_one_side_alone_is_not_offered(tmp_path: Path) -> None:
    """Nothing lies before a mark that is older than every run, nor after one that is newer."""
    url, now = record(tmp_path, {"backend": "mem0"}), datetime.now(UTC)
    with closing(open_database(url)) as db:
        writes.add_mark(db, "long ago", now - timedelta(days=900), "deploy")
        writes.add_mark(db, "just now", now + timedelta(hours=1), "deploy")
        assert [one.kind for one in queries.side_choices(db, "golden")] == ["newest", "day", "run"]


def test_without_a_word_the_alarming_backend_meets_the_best_other(
    open_page: Open, alarmed: tuple[Path, Alarmed]
) -> None:
    """Whoever opens the page during an alarm sees that backend, in use, beside the best other one."""
    path, _ = alarmed
    a, b = chosen(open_page("compare", f"sqlite:///{path}"))
    with closing(open_database(f"sqlite:///{path}")) as db:
        standing = queries.alerts(db, states=compared.STANDING, suite="golden")
        rates = {
            row.backend: row.last_whole.metrics["pass"].mean
            for row in queries.overview(db)
            if row.suite == "golden" and row.last_whole
        }
    assert a in {row.backend for row in standing}
    assert b == max((name for name in rates if name != a), key=rates.__getitem__)


def test_a_side_written_by_hand_is_taken(open_page: Open, seeded: Seeded) -> None:
    """A link may hold any side that the grammar knows; it is shown as the one chosen."""
    at = open_page("compare", seeded.url, suite="golden", a="mem0@mem0ai==2.1.0", b="mem0@2.2.1")
    assert "mem0 2.2.1" in title(at)
    assert chosen(at) == ("mem0@mem0ai==2.1.0", "mem0@2.2.1")
    assert "mem0ai" in set(at.dataframe[-1].value["what"])


@pytest.mark.parametrize(
    ("a", "why"),
    [
        ("mem0<no such day", "is no mark and no day"),
        ("@", "names no side"),
        ("nobody", "no whole run of golden on nobody"),
        ("9999999", "no run 9999999"),
        ("hybrid", "made of the same runs"),
        (HOSTILE, "names no side"),
    ],
)
def test_a_side_that_is_none_is_explained(a: str, why: str, open_page: Open, seeded: Seeded) -> None:
    """The page says what is wrong with it, and which command asks both."""
    at = open_page("compare", seeded.url, suite="golden", a=a, b="hybrid")
    assert title(at) == "These two cannot be compared"
    assert why in text(at)
    assert any(code.startswith("memtrend compare ") for code in codes(at))


def test_a_choice_is_kept_in_the_address(open_page: Open, seeded: Seeded) -> None:
    """Choosing, and changing places, write both sides down."""
    at = open_page("compare", seeded.url, **SIDES)
    at.selectbox(key="side-b").set_value("dense").run()
    assert (at.query_params["a"], at.query_params["b"]) == ("mem0", "dense")
    next(button for button in at.button if button.label == "Swap").click().run()
    assert chosen(at) == ("dense", "mem0")
    assert (at.query_params["a"], at.query_params["b"]) == ("dense", "mem0")


def test_another_suite_keeps_what_it_knows(open_page: Open, seeded: Seeded) -> None:
    """A backend stays chosen, a run of the other suite does not."""
    run = str(of_record(seeded).a.runs[-1].id)
    at = open_page("compare", seeded.url, suite="golden", a=run, b="hybrid")
    at.selectbox(key="suite").set_value("contract").run()
    assert chosen(at)[1] == "hybrid"
    assert chosen(at)[0] != run
    assert not title(at).startswith("These two")


# Without an answer ----------------------------------------------------------------------------------------


def test_one_backend_alone_is_told_what_to_run(open_page: Open, tmp_path: Path) -> None:
    """Where only one has answered, the page names the command that asks another."""
    at = open_page("compare", record(tmp_path, {"backend": "mem0"}))
    assert title(at) == "Only mem0 has answered golden so far"
    assert "memtrend run --suite golden --backend NAME" in codes(at)


def test_nothing_was_run(open_page: Open, tmp_path: Path) -> None:
    """An empty record says what to type."""
    at = open_page("compare", f"sqlite:///{tmp_path}/new.db")
    assert title(at) == "Nothing has been measured yet"
    assert codes(at) == ["memtrend run"]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"cases": ("e", "f")}, "was not asked of hybrid"),
        ({"errors": ("a", "b", "c", "d")}, "got no answer from hybrid"),
    ],
)
def test_sides_without_a_common_answer(other: dict, why: str, open_page: Open, tmp_path: Path) -> None:
    """Sides that share no case, and one that has errors alone: why is said, with the command that asks anew,
    and nothing is drawn."""
    at = open_page("compare", record(tmp_path, {"backend": "mem0"}, {"backend": "hybrid", **other}), **SIDES)
    assert title(at).startswith("Cannot tell yet")
    assert why in text(at)
    assert "memtrend compare mem0 hybrid --suite golden" in codes(at)
    assert not at.get("plotly_chart")


# To take along --------------------------------------------------------------------------------------------


def test_what_memories_said_is_taken_along_only_where_asked_for(seeded: Seeded) -> None:
    """Neither report nor table holds a question or an answer, unless that was ticked."""
    c = of_record(seeded)._replace(lost=(turned("x", query="hush?", a_hit="hush-hush"),), gained=())
    bare = c._replace(with_texts=False)
    for write in (report.html, report.markdown):
        assert "hush-hush" in write(c)
        assert "hush" not in write(bare)
    frame = compare_tables.turned_csv(compare_tables.turned(c))
    assert "hush" not in frame.to_csv()
    assert list(frame["change"]) == ["lost"]


def test_every_figure_of_the_plot_is_in_its_table() -> None:
    """A row for all cases, each metric and each tag, in points, with what is said of it."""
    c = comparison()
    frame = compare_tables.differences_frame(c).set_index("name")
    assert list(frame["of"]) == ["all", "metric", "metric", "tag", "tag"]
    assert frame.loc["speaker", ["better_by", "low", "high"]].tolist() == [-12.5, -32.5, 7.5]
    assert frame.loc["golden", "says"] == comparison_words.verdict(c)


# Ways here ------------------------------------------------------------------------------------------------


def ways(at: AppTest) -> list[dict[str, list[str]]]:
    links = [link.proto for link in at.get("page_link")]
    return [parse_qs(link.query_string) for link in links if "ompare" in link.label]


def test_an_alert_leads_to_its_comparison(open_page: Open, alarmed: tuple[Path, Alarmed]) -> None:
    """From the last good run to the first bad one; and that page draws."""
    path, _ = alarmed
    url = f"sqlite:///{path}"
    with closing(open_database(url)) as db:
        row = next(
            one for one in queries.alerts(db, suite="golden") if one.incident.last_good_run_id and one.backend
        )
    (way,) = ways(open_page("alert", url, alert=str(row.id)))
    assert way["a"] == [str(row.incident.last_good_run_id)]
    at = open_page("compare", url, **{name: values[0] for name, values in way.items()})
    assert f"{row.backend} run {row.first_bad_run_id}" in title(at)
    assert not title(at).startswith("These two")


def test_a_run_leads_to_the_comparison_with_its_last_good_one(open_page: Open, seeded: Seeded) -> None:
    """Its verdict knows which that is; a run that has none is held against the one before."""
    run = of_record(seeded).a.runs[-1]
    with closing(open_database(seeded.url)) as db:
        said = queries.verdict(db, run.id)
    assert said is not None
    (way,) = ways(open_page("run", seeded.url, run=str(run.id)))
    assert way == {"suite": ["golden"], "a": [str(said.content["baseline"][-1])], "b": [str(run.id)]}
