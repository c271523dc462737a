"""Tables to take along."""

from __future__ import annotations

from io import BytesIO

import pandas as pd
import pytest

from dashboard import tables


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum(A1)", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    """Text that a spreadsheet would run is marked as text."""
    frame = pd.DataFrame([{"case": text, "n": 1}])
    assert pd.read_csv(BytesIO(tables.csv(frame)))["case"][0].startswith("'")


def test_numbers_and_usual_text_stay() -> None:
    """Negative numbers, missing values, and signs within a text are left as they are."""
    frame = pd.DataFrame([{"n": -1.5, "text": "a-b = c", "none": None}])
    assert tables.csv(frame) == b"n,text,none\n-1.5,a-b = c,\n"


def test_a_phone_shows_verdicts_first() -> None:
    """On a narrow screen the verdict stands among the first columns, and no column is left out."""
    order = tables.narrow_runs()
    assert order.index("state") < 4
    assert sorted(order) == sorted(tables.runs_columns({}))
