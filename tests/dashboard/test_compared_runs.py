"""A side of a comparison on the pages: a run among the runs, and no night."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from store import models as m
from store import queries
from store.database import open_database
from tests.dashboard.conftest import Open
from tests.dashboard.seed import seed
from tests.dashboard.test_pages import text, title

COMMAND = "memtrend compare hybrid mem0 --suite golden --margin 0.05"


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """A record in which a comparison with dense was interrupted, and its run on mem0."""
    url = f"sqlite:///{tmp_path_factory.mktemp('compared')}/memtrend.db"
    database = open_database(url)
    seed(database, nights=3, cases=20, hostile=False)
    [row] = queries.runs(database, suites=["golden"], backends=["mem0"], limit=1)
    values = {"subset": queries.COMPARED, "status": "interrupted", "reason": "stopped"}
    with database.write() as connection:
        side = m.run.update().where(m.run.c.id == row.id)
        connection.execute(side.values(**values, meta={"compared_with": "hybrid", "command": COMMAND}))
        connection.execute(sa.delete(m.rollup).where(m.rollup.c.run_id == row.id))
    database.close()
    return url, row.id


def test_its_page(interrupted: tuple[str, int], open_page: Open) -> None:
    """It says what the run was for, and with which command it is gone on with."""
    url, run_id = interrupted
    at = open_page("run", url, run=str(run_id))
    title(at)
    assert "This run is a side of a comparison, and no night of its series." in text(at)
    assert f"`{COMMAND}` finishes it" in text(at).replace("\\", "")
    assert [block.value for block in at.code] == [COMMAND]


def test_in_the_list_and_on_the_overview(interrupted: tuple[str, int], open_page: Open) -> None:
    """Among the runs it is called a comparison; the overview goes by the nights before it."""
    url, run_id = interrupted
    rows = open_page("runs", url, suite="golden", backends="mem0").dataframe[0].value
    assert rows[rows["run"] == run_id]["suite"].tolist() == ["golden (comparison)"]
    overview = open_page("overview", url)
    title(overview)
    assert "nterrupted" not in text(overview)
