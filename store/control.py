"""A run beside a control: a frozen release of the backend, run in the same hours. Pure.

When both fall, the cause is shared (provider, judge, machine), and no change of the backend. Whoever runs a
control arm hands in, for each night, the cases on which the two differ, and what became of the control
against its own baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from store.stats.comparisons import Evidence, sequential_evidence

Cause = Literal["backend", "shared", "none", "cannot tell"]


class Pairing(NamedTuple):
    """One night of both: `lost` cases that the control passes and the backend does not, `gained` the other
    way round; `fell`: the verdict of each against its own baseline was worse."""

    lost: int
    gained: int
    backend_fell: bool
    control_fell: bool


class ControlVerdict(NamedTuple):
    """`evidence` may be read after every night: it is anytime-valid."""

    cause: Cause
    evidence: Evidence


def against_control(nights: Sequence[Pairing], alpha: float = 0.05) -> ControlVerdict:
    """What the nights since the control was set up say, oldest first. The backend itself changed when it
    loses more cases against its control than the other way round, beyond chance at `alpha`."""
    evidence = sequential_evidence(
        [night.lost for night in nights], [night.gained for night in nights], alpha
    )
    if evidence.first is not None and evidence.lost > evidence.gained:
        return ControlVerdict("backend", evidence)
    fallen = [night for night in nights[-1:] if night.backend_fell]
    if not nights or not fallen:
        return ControlVerdict("none", evidence)
    return ControlVerdict("shared" if fallen[0].control_fell else "cannot tell", evidence)
