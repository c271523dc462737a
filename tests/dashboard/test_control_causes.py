"""What a control says of a cause, on the pages: a shared one stands out, and every view draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from store import models as m
from store import queries
from store.database import open_database
from tests.dashboard.conftest import Open
from tests.dashboard.seed import seed
from tests.dashboard.test_pages import text


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Some nights of all backends, with a frozen release beside mem0."""
    url = f"sqlite:///{tmp_path_factory.mktemp('causes')}/memtrend.db"
    database = open_database(url)
    seed(database, nights=12, cases=20, hostile=False, control=True)
    database.close()
    return url


@pytest.fixture
def caused(url: str) -> Callable[..., int]:
    """Lets what the control says of mem0's newest run have these values, and gives the run."""

    def say(**told: Any) -> int:
        database = open_database(url)
        rows = queries.runs(database, suites=["golden"], backends=["mem0"])
        run_id = next(row.id for row in rows if not row.subset)
        said = queries.verdict(database, run_id)
        assert said is not None
        content = {**said.content, "control": {**said.content["control"], **told}}
        with database.write() as connection:
            connection.execute(m.verdict.update().where(m.verdict.c.run_id == run_id).values(content=content))
        database.close()
        return run_id

    return say


@pytest.mark.parametrize(
    ("cause", "icon", "said"),
    [
        ("shared", ":material/hub:", "Shared cause (provider, judge, machine)"),
        ("backend", ":material/compare_arrows:", "The backend itself"),
        ("none", ":material/compare_arrows:", "In passes no worse than its control"),
    ],
)
def test_a_shared_cause_stands_out(
    url: str, caused: Callable[..., int], open_page: Open, cause: str, icon: str, said: str
) -> None:
    """What fell on both has a sign of its own, which no other cause has."""
    run_id = caused(cause=cause, fell=cause == "shared")
    told = [line for line in text(open_page("run", url, run=str(run_id))).splitlines() if said in line]
    assert [line.split(" ")[0] for line in told] == [icon]


def test_one_each_draws_it_beside_its_backend(url: str, open_page: Open) -> None:
    """Each backend's panel has its own control, and says so."""
    at = open_page("trends", url, suite="golden", view="One each")
    assert "control mem0ai 2.0.0" in str(at.get("plotly_chart")[0].proto.spec)
    assert "Grey dashes: the control" in text(at)


def test_run_now_offers_no_control(url: str, open_page: Open) -> None:
    """A control runs beside its backend: by itself it could only fail."""
    at = open_page("runs", url)
    box = at.selectbox(key="ask-backend")
    assert "mem0" in box.options
    assert "mem0-control" not in box.options
