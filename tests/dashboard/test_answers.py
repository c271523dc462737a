"""Answers of the record are shared by all pages and viewers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dashboard import data
from tests.dashboard.conftest import Open, Seeded
from tests.dashboard.test_pages import PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_changes_no_answer(
    page: str, open_page: Open, seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page got from the record is afterwards as it was."""
    given: list[tuple[Any, Any]] = []

    def ask(question: Any, *args: Any, **kwargs: Any) -> Any:
        answer = real(question, *args, **kwargs)
        given.append((answer, copy.deepcopy(answer)))
        return answer

    real = data.ask
    monkeypatch.setattr(data, "ask", ask)
    open_page(page, seeded.url, run=str(seeded.world.invalid_run), case="keys")
    assert given
    assert [answer for answer, before in given if answer != before] == []
