"""The page of a case: over runs and trials, beside the other backends, and on to the next lost one."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from dashboard import charts, stories
from dashboard.figures import NARROW_RIGHT
from dashboard.strips import MOST_COUNTED, Cell, Row
from tests.dashboard.conftest import Open, Seeded
from tests.dashboard.test_charts import START, STYLES, row, traces, window, words_on
from tests.dashboard.test_pages import text


def page(open_page: Open, seeded: Seeded, case: int = 0, backend: str = "mem0") -> Any:
    name = sorted(seeded.world.broken)[case]
    return open_page("case", seeded.url, suite="golden", case=name, backend=backend)


def test_every_trial_of_the_night_counts(open_page: Open, seeded: Seeded) -> None:
    """What asking again found is counted with the run that was in doubt, and the square tells it."""
    at = page(open_page, seeded)
    assert "failed 7 of 7 trials" in text(at)
    spec = at.get("plotly_chart")[0].proto.spec
    assert "asked again: passed 0 of 6 times" in json.dumps(json.loads(spec), ensure_ascii=False)


def test_one_lost_case_leads_to_the_next(open_page: Open, seeded: Seeded) -> None:
    """From each of the cases that a run lost a button leads to the one after it, and from the last to the
    first."""
    for number, following in enumerate((2, 3, 1)):
        at = page(open_page, seeded, number)
        assert f"Next lost case, {following} of 3" in [button.label for button in at.button]


def test_the_other_backends_answer_beside_it(open_page: Open, seeded: Seeded) -> None:
    """Of every other backend the newest answer stands whole: its hits in order, the wanted and unwanted ones
    marked, and why it was lost."""
    at = page(open_page, seeded)
    assert "The same case elsewhere" in [heading.value for heading in at.subheader]
    assert sum(":green-badge[wanted]" in one.value for one in at.markdown) >= 4
    shown = text(at)
    assert all(f" **{name}**" in shown for name in ("keyword", "dense", "hybrid", "notes"))
    assert shown.count("5 returned") == 6  # four beside it, the last good answer, and that of now


def test_a_run_of_several_trials_says_how_many_passed() -> None:
    """A cell of three trials says "2/3" where there is room, and its colour lies between."""
    cells = [Cell(100 + day, START + timedelta(days=day), 2, 3) for day in range(4)]
    figure = charts.history([Row("a", "mem0", STYLES["mem0"], cells)], window())
    (told,) = [trace for trace in traces(figure, "scatter") if trace.mode == "text"]
    assert set(told.text) == {"2/3"}
    (cell,) = traces(figure, "heatmap")
    assert cell.z[0][0] == pytest.approx(1 / 3)
    many = charts.history([row("a", "+" * (MOST_COUNTED + 1))], window())
    assert not [trace for trace in traces(many, "scatter") if trace.mode == "text"]


def test_a_narrow_screen_is_for_the_chart() -> None:
    """Where names have no room, markers stand for them, in either kind of chart."""
    narrow = window()._replace(narrow=True)
    figure = charts.history([row("a", "++-")], narrow)
    assert figure.layout.margin.r == NARROW_RIGHT
    assert [word for word in words_on(figure) if word] == [STYLES["mem0"].glyph]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"stored": {"w1": False}, "deep_rank": None}, "Not found by its own text either"),
        ({"stored": {"w1": True}, "deep_rank": None}, "no recall brings it back"),
        (
            {"stored": {"w1": True}, "deep_rank": 8, "legs": {"keyword": 1, "vector": 7}},
            "Stored, but at rank 8, while the keyword leg alone has it within 5.",
        ),
        ({"stored": {"w1": True}, "deep_rank": 2}, "asked again it came at rank 2"),
    ],
)
def test_a_diagnosis_is_a_sentence(found: dict[str, Any], expected: str) -> None:
    """Above the table of what was tried stands where the answer was lost."""
    assert expected in stories.summary(found, 5)
    assert stories.summary(None, 5) == ""
