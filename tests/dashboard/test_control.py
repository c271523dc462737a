"""A control on the pages: a grey line beside its backend, a sentence on its run, and nowhere a backend."""

from __future__ import annotations

import pytest

from dashboard.palette import THEMES, styles
from store import queries
from store.database import open_database
from tests.dashboard.conftest import Open
from tests.dashboard.seed import seed
from tests.dashboard.test_pages import text, title


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Some nights of all backends, with a frozen release beside mem0."""
    url = f"sqlite:///{tmp_path_factory.mktemp('control')}/memtrend.db"
    database = open_database(url)
    seed(database, nights=12, cases=20, hostile=False, control=True)
    database.close()
    return url


@pytest.fixture
def pair(url: str) -> tuple[int, int]:
    """The newest run of mem0 on golden, and its control's."""
    database = open_database(url)
    row = next(row for row in queries.runs(database, suites=["golden"], backends=["mem0"]) if not row.subset)
    found = queries.control_beside(database, row.id)
    database.close()
    assert found is not None
    return row.id, found.control_id


def test_beside_its_backend_on_trends(url: str, open_page: Open) -> None:
    """The control's line is named by its release, is no backend to choose, and goes with its backend."""
    at = open_page("trends", url, suite="golden")
    assert "Grey dashes: the control" in text(at)
    assert [pill for pill in at.get("button_group")[-1].options if "control" in str(pill)] == []
    assert "control mem0ai 2.0.0" in str(at.get("plotly_chart")[0].proto.spec)
    without = open_page("trends", url, suite="golden", backends="dense")
    assert "control mem0ai" not in str(without.get("plotly_chart")[0].proto.spec)


def test_on_a_run(url: str, pair: tuple[int, int], open_page: Open) -> None:
    """A run tells what its control says; the control's own page leads back to it."""
    own, control = (open_page("run", url, run=str(run_id)) for run_id in pair)
    assert "control mem0ai 2.0.0" in text(own)
    title(control)
    assert "A frozen release made this run in the same hours" in text(control)
    assert f"Run {pair[0]}" in [button.label for button in control.button]


def test_in_the_list_of_runs(url: str, pair: tuple[int, int], open_page: Open) -> None:
    """The list of runs has the control's run as a row of its own."""
    at = open_page("runs", url, suite="golden", backends="mem0-control")
    title(at)
    assert pair[1] in list(at.dataframe[0].value["run"])


def test_a_case_of_a_control_by_its_address(url: str, open_page: Open) -> None:
    """An address that names a control and no run shows the control; without it there is none to choose."""
    database = open_database(url)
    case = queries.suite_cases(database, "golden")[0].name
    database.close()
    at = open_page("case", url, suite="golden", case=case, backend="mem0-control")
    assert title(at).startswith("mem0-control ")
    assert at.get("button_group")[0].value == "mem0-control"
    without = open_page("case", url, suite="golden", case=case)
    assert "mem0-control" not in without.get("button_group")[0].options


def test_no_card_on_the_overview(url: str, open_page: Open) -> None:
    """The overview knows the team's backends, and counts no control among them."""
    at = open_page("overview", url)
    title(at)
    assert "mem0-control" not in text(at)


def test_grey_dashes_take_no_colour(url: str) -> None:
    """A control is grey and dashed, and leaves every backend the colour that it had."""
    database = open_database(url)
    known = queries.backends(database)
    database.close()
    theme = THEMES["light"]
    drawn, before = styles(known, theme), styles([one for one in known if not one.control_of], theme)
    assert (drawn["mem0-control"].colour, drawn["mem0-control"].dash) == (theme.floor, "6px,4px")
    assert {name: drawn[name] for name in before} == before
