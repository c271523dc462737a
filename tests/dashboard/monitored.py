"""A record with a living collector, and what the pages about the monitor show."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import time_machine
from streamlit.testing.v1 import AppTest

from store import writes
from store.database import Database, open_database

NOW = datetime.now(UTC).replace(microsecond=0)
CONFIGURATION = """
[backends.mem0]
type = "mem0"
package = "mem0ai==2.2.1"
control = "mem0ai==2.0.0"
config = { llm = { config = { api_key = "sk-planted-secret" } } }

[schedules.hourly]
every = "1h"
suites = ["golden"]
subset = { share = 0.2 }
jitter = "10m"
window = "2h"
catch_up = "none"

[api]
token = "planted-token"
"""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Database]:
    """A record of one living collector, one schedule, and nothing else."""
    database = open_database(f"sqlite:///{tmp_path}/fresh.db")
    writes.beat(database, "collector", 4711, "here")
    writes.record_schedule(database, "nightly", NOW + timedelta(hours=1), True)
    yield database
    database.close()


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "memtrend.toml"
    path.write_text(CONFIGURATION)
    monkeypatch.setenv("MEMTREND_CONFIG", str(path))
    return path


def cards(at: AppTest) -> dict[str, str]:
    return {metric.label.replace("\\", ""): metric.value for metric in at.metric}


def frame(at: AppTest, column: str) -> list[dict[str, object]]:
    """The rows of the table that has this column."""
    table = next(table.value for table in at.dataframe if column in table.value.columns)
    return [
        {name: list(value) if isinstance(value, np.ndarray) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def expect_fire(database: Database, at: datetime, schedule: str = "nightly") -> None:
    with time_machine.travel(at - timedelta(hours=1), tick=False):
        writes.write_expected(database, schedule, [at], at)
