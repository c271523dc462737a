"""Every INSERT and UPDATE of the record, each one short write transaction.

What must be computed is computed before the transaction begins: none spans a backend call, a statistic
or a network call. Every function raises `DatabaseError` when the file cannot be written, and `StoreError`
when the record refuses.
"""

from store.writes.alerts import (
    Decide,
    NewDelivery,
    Route,
    act_on_alert,
    forget_payloads,
    nobody,
    route_people,
    send_later,
    turn_alerts,
)
from store.writes.baselines import (
    Imported,
    import_baseline,
)
from store.writes.controls import (
    open_pair,
)
from store.writes.decisions import decide_baseline, intend_alert
from store.writes.fires import (
    MAX_DEATHS,
    Closed,
    PassedOver,
    claim_fire,
    finish_fire,
    give_back,
    hold_fire,
    note_runs,
    pass_over,
    start_fire,
    take_back_from_the_dead,
    write_expected,
)
from store.writes.journal import keep_journal
from store.writes.leases import (
    LEADER_LEASE,
    Deposed,
    acquire_lease,
    backend_lease,
    release_lease,
    renew_lease,
)
from store.writes.lint import (
    record_lint,
)
from store.writes.machines import (
    ask_for_run,
    draw_mark,
)
from store.writes.mutants import (
    record_mutants,
)
from store.writes.operation import (
    add_event,
    add_mark,
    add_request,
    ask_for_look,
    beat,
    claim_request,
    finish_request,
    put_back_request,
    record_schedule,
)
from store.writes.outbox import (
    CLAIM_S,
    LONGEST_WAIT_S,
    Claim,
    a_test,
    claim_delivery,
    disable_channel,
    drop_others,
    enable_channel,
    fold,
    give_up,
    mark_sent,
    put_off,
    record_test,
)
from store.writes.policy import (
    Decision,
    decide_case,
    expect_counts,
    explain_version,
)
from store.writes.proofs import (
    DIED,
    begin_proof,
    call_off_proof,
    finish_proof,
)
from store.writes.renames import Renamed, rename_backend
from store.writes.retention import remove
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
    record_verdict,
)

__all__ = [
    "CLAIM_S",
    "DIED",
    "LEADER_LEASE",
    "LONGEST_WAIT_S",
    "MAX_DEATHS",
    "Claim",
    "Closed",
    "Decide",
    "Decision",
    "Deposed",
    "Imported",
    "LeaseLost",
    "NewDelivery",
    "PassedOver",
    "Renamed",
    "Route",
    "a_test",
    "acquire_lease",
    "act_on_alert",
    "add_event",
    "add_mark",
    "add_request",
    "ask_for_look",
    "ask_for_run",
    "backend_lease",
    "beat",
    "begin_proof",
    "call_off_proof",
    "cancel_run",
    "claim_delivery",
    "claim_fire",
    "claim_request",
    "close_run",
    "decide_baseline",
    "decide_case",
    "disable_channel",
    "draw_mark",
    "drop_others",
    "enable_channel",
    "expect_counts",
    "explain_version",
    "finish_fire",
    "finish_proof",
    "finish_request",
    "fold",
    "forget_payloads",
    "give_back",
    "give_up",
    "hold_fire",
    "import_baseline",
    "intend_alert",
    "interrupt_stale_runs",
    "keep_journal",
    "mark_sent",
    "nobody",
    "note_runs",
    "open_pair",
    "open_run",
    "pass_over",
    "put_back_request",
    "put_off",
    "record_lint",
    "record_mutants",
    "record_schedule",
    "record_test",
    "record_verdict",
    "register_backend",
    "register_environment",
    "register_suite",
    "release_lease",
    "remove",
    "rename_backend",
    "renew_lease",
    "reopen_run",
    "rescore",
    "route_people",
    "save_scenario",
    "send_later",
    "start_fire",
    "take_back_from_the_dead",
    "turn_alerts",
    "write_expected",
]
