"""Pages over a record that was upgraded, or of which parts were removed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dashboard import data
from store import writes
from store.database import open_database
from store.queries.retention import What
from tests.dashboard.conftest import Open
from tests.dashboard.test_pages import PAGES, text, title
from tests.store import first_release


@pytest.mark.parametrize("page", PAGES)
def test_pages_open_on_an_upgraded_record(page: str, open_page: Open, tmp_path: Path) -> None:
    """Every page draws over a record that the first release made, once it is brought up to date."""
    first_release.make(f"sqlite:///{tmp_path / 'memtrend.db'}")
    at = open_page(page, f"sqlite:///{tmp_path / 'memtrend.db'}", run="3", case="keys")
    empty = ("There is no such", "Nothing has been measured", "No run yet", "No suite is known")
    assert not title(at).startswith(empty)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("details", "Its texts were removed by retention after 90 d; verdict and figures stay."),
        ("results", "Its results and texts were removed by retention after 90 d; verdict and figures stay."),
    ],
)
def test_a_run_says_what_was_removed_of_it(what: What, said: str, open_page: Open, tmp_path: Path) -> None:
    """The Run page says what retention took, and its title still tells how many cases passed."""
    first_release.make(f"sqlite:///{tmp_path / 'memtrend.db'}")
    url = f"sqlite:///{tmp_path / 'memtrend.db'}"
    whole = title(open_page("run", url, run="3"))
    with closing(open_database(url)) as db:
        writes.remove(db, 3, what, "90d")
    data.forget()  # what the pages know is two seconds old at most
    at = open_page("run", url, run="3")
    assert said in text(at)
    assert title(at).split(" passed")[0] == whole.split(" passed")[0]
    assert what == "details" or "the same as" not in title(at)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("details", "Its texts were removed by retention after 90 d."),
        ("results", "results and texts were removed by retention after 90 d."),
    ],
)
def test_what_was_removed_is_said(what: What, said: str, open_page: Open, tmp_path: Path) -> None:
    """The Case page of a run that retention took something from says what, and after how long."""
    first_release.make(f"sqlite:///{tmp_path / 'memtrend.db'}")
    url = f"sqlite:///{tmp_path / 'memtrend.db'}"
    with closing(open_database(url)) as db:
        writes.remove(db, 3, what, "90d")
    shown = text(open_page("case", url, run="3", case="keys"))
    assert said in shown
    assert "under the mat" not in shown
