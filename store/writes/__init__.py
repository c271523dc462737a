"""Every INSERT and UPDATE of the record, each one short write transaction.

What must be computed is computed before the transaction begins: none spans a backend call, a statistic
or a network call. Every function raises `DatabaseError` when the file cannot be written, and `StoreError`
when the record refuses.
"""

from store.writes.baselines import (
    Imported,
    import_baseline,
)
from store.writes.controls import (
    open_pair,
)
from store.writes.journal import keep_journal
from store.writes.leases import (
    acquire_lease,
    backend_lease,
    release_lease,
    renew_lease,
)
from store.writes.lint import (
    record_lint,
)
from store.writes.mutants import (
    record_mutants,
)
from store.writes.operation import (
    add_event,
    add_mark,
    add_request,
    beat,
    claim_request,
    finish_request,
    record_fire,
    record_schedule,
    write_expected,
)
from store.writes.policy import (
    Decision,
    decide_case,
    expect_counts,
    explain_version,
)
from store.writes.runs import (
    LeaseLost,
    cancel_run,
    close_run,
    interrupt_stale_runs,
    open_run,
    reopen_run,
    rescore,
    save_scenario,
)
from store.writes.suites import (
    register_backend,
    register_environment,
    register_suite,
)
from store.writes.verdicts import (
    decide_baseline,
    record_verdict,
)

__all__ = [
    "Decision",
    "Imported",
    "LeaseLost",
    "acquire_lease",
    "add_event",
    "add_mark",
    "add_request",
    "backend_lease",
    "beat",
    "cancel_run",
    "claim_request",
    "close_run",
    "decide_baseline",
    "decide_case",
    "expect_counts",
    "explain_version",
    "finish_request",
    "import_baseline",
    "interrupt_stale_runs",
    "keep_journal",
    "open_pair",
    "open_run",
    "record_fire",
    "record_lint",
    "record_mutants",
    "record_schedule",
    "record_verdict",
    "register_backend",
    "register_environment",
    "register_suite",
    "release_lease",
    "renew_lease",
    "reopen_run",
    "rescore",
    "save_scenario",
    "write_expected",
]
