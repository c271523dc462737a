"""A run beside a control: a frozen release of the backend, run in the same hours. Pure.

When both fall, the cause is shared (provider, judge, machine), and no change of the backend. Whoever runs a
control arm hands in, for each night, the cases on which the two differ, and what became of the control
against its own baseline.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from store.evidence import Cause, Control, Moved, Stage, Word
from store.queries.controls import ControlNight, ControlRecord, Said
from store.stats.comparisons import Evidence, sequential_evidence

MENDED = 5
"""Nights in a row that were not worse, after one that was: what fell has been mended."""


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
    loses more cases against its control than the other way round, beyond chance at `alpha`. In a night in
    which both fell, what earlier nights show is no reason for it: that night alone must show it."""
    evidence = _evidence(nights, alpha)
    fallen = [night for night in nights[-1:] if night.backend_fell]
    both = any(night.control_fell for night in fallen)
    telling = _evidence(fallen, alpha) if both else evidence
    if telling.first is not None and telling.lost > telling.gained:
        return ControlVerdict("backend", evidence)
    if not fallen:
        return ControlVerdict("none", evidence)
    return ControlVerdict("shared" if both else "cannot tell", evidence)


def _evidence(nights: Sequence[Pairing], alpha: float) -> Evidence:
    return sequential_evidence([night.lost for night in nights], [night.gained for night in nights], alpha)


def read(
    record: ControlRecord, run_id: int, word: Word, stage: Stage, moved: Collection[Moved] = ()
) -> Control:
    """What the control says of the run whose verdict is `word` at `stage`, with what `moved` beside it."""
    backend = Said(word, stage, None)
    nights = [night._replace(backend=backend) if night.run_id == run_id else night for night in record.nights]
    nights = nights[_mended(nights[:-1]) :]
    found = against_control([_pairing(night) for night in nights])
    last = nights[-1].control if nights and record.unread is None else None
    cause = found.cause
    if record.unread is not None:  # earlier nights say nothing of this one
        cause = "cannot tell" if word == "worse" else "none"
    evidence = found.evidence
    return Control(
        run_id=record.control_id,
        release=record.release,
        cause=cause,
        nights=len(nights),
        lost=evidence.lost,
        gained=evidence.gained,
        dropped=sum(night.dropped for night in nights),
        log_ratio=evidence.log_ratio,
        p=evidence.p,
        since=None if evidence.first is None else nights[evidence.first].run_id,
        fell=_fell(last, backend) if last and not last.why else None,
        untold=last.why if last else None,
        unread=record.unread,
        alike=tuple(one.metric for one in moved if last and (one.metric, one.worse) in last.moved),
    )


def _mended(nights: Sequence[ControlNight]) -> int:
    """How many of the first nights are of a fall that is over: those after it are counted from nothing, so
    that what ends the count may be read from it."""
    over, fallen, sound = 0, False, 0
    for number, night in enumerate(nights, start=1):
        word = night.backend.verdict if night.backend else "cannot_tell"
        if word == "worse":
            fallen, sound = True, 0
        elif word != "cannot_tell":
            sound += 1
        if fallen and sound == MENDED:
            over, fallen = number, False
    return over


def _pairing(night: ControlNight) -> Pairing:
    backend = night.backend or Said("cannot_tell", "", None)
    return Pairing(
        night.lost, night.gained, backend.verdict == "worse",
        night.control is not None and _fell(night.control, backend),
    )  # fmt: skip


def _fell(control: Said, backend: Said) -> bool:
    """A leak of the control came over many nights, and is no reason for what fell in this one."""
    return control.verdict == "worse" and (control.stage != "leak" or backend.stage == "leak")
