"""The tables of the record as Core statements name them: Core inserts are 14 times as fast as objects through
the ORM. A change of theirs goes with a migration in `store/migrations/`.
"""

from __future__ import annotations

from sqlalchemy import Exists, exists

from store.dialects.sql import NOW
from store.models import alerts, operation, runs, suites  # noqa: F401  they define the tables
from store.models.base import Base
from store.models.operation import BACKEND_LEASE, LEADER_LEASE

__all__ = ["BACKEND_LEASE", "LEADER_LEASE", "Base", "run_is_live"]

_tables = Base.metadata.tables

suite = _tables["suite"]
suite_version = _tables["suite_version"]
case = _tables["case"]
suite_version_case = _tables["suite_version_case"]
suite_change = _tables["suite_change"]
case_state = _tables["case_state"]
lint_report = _tables["lint_report"]
finding = _tables["finding"]
mutant = _tables["mutant"]
expected_count = _tables["expected_count"]

backend = _tables["backend"]
environment = _tables["environment"]
scorer = _tables["scorer"]
run = _tables["run"]
control = _tables["control"]
verdict = _tables["verdict"]
baseline_change = _tables["baseline_change"]
scenario_result = _tables["scenario_result"]
case_result = _tables["case_result"]
score = _tables["score"]
detail = _tables["detail"]
journal = _tables["journal"]
removal = _tables["removal"]
spent = _tables["spent"]
rollup = _tables["rollup"]

alert = _tables["alert"]
alert_signal = _tables["alert_signal"]
alert_step = _tables["alert_step"]
delivery = _tables["delivery"]
channel_state = _tables["channel_state"]
proof = _tables["proof"]

mark = _tables["mark"]
event = _tables["event"]
heartbeat = _tables["heartbeat"]
schedule_state = _tables["schedule_state"]
fire = _tables["fire"]
request = _tables["request"]
lease = _tables["lease"]
change = _tables["change"]


def run_is_live() -> Exists:
    """Whether the run at hand still holds its backend's lease. A `running` run that does not was killed or
    deposed."""
    return exists().where(
        backend.c.id == run.c.backend_id,
        lease.c.name == BACKEND_LEASE + backend.c.name,
        lease.c.token == run.c.token,
        lease.c.expires > NOW,
    )
