"""A folder of its own for the suite of each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.suite import Suite, SuiteConfig, load
from tests.collectors.suites.lines import LAB, Line, Reader, written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def reading(folder: Path) -> Reader:
    def read(
        *cases: Line, only: tuple[str, ...] = (), without: tuple[str, ...] = (), **worlds: list[Line]
    ) -> Suite:
        path = written(folder, cases, {"lab": LAB, **worlds})
        return load(SuiteConfig("mine", path, only=only, without=without))

    return read
