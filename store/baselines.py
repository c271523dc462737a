"""What a run is held against: the last good runs, behind an anchor that stands still. Pure.

A baseline that only rolls makes a slow leak normal, so it takes in no run that is worse than its anchor. One
that only stands still alarms sooner or later on an unchanged backend, so the newest good runs are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

RECENT = 10
"""Nights that a run is compared with, and that an anchor consists of."""
HISTORY = 60
"""Nights that tell how much nights differ."""
FULL = 5
"""Distinct days before a verdict is more than provisional."""

Action = Literal["pin", "hold", "exclude", "include", "intended", "reset"]
ACTIONS = {
    "pin": "these runs are the anchor from now on",
    "hold": "these runs alone are compared with, and nothing rolls, until the next pin or reset",
    "exclude": "these runs stand in no baseline",
    "include": "these runs may stand in baselines again",
    "intended": "the change that came with this run was meant: the baseline begins with it",
    "reset": "the baseline begins anew with the next run",
}


class Decision(NamedTuple):
    """What a person decided, about which runs, and why."""

    action: Action
    run_ids: tuple[int, ...]
    reason: str
    author: str
    at: datetime


class Night(NamedTuple):
    """A whole run, as far as baselines ask. `system` names what makes answers incomparable when it differs:
    scorer, judge, embedder. `primed`: made to prime a baseline, so that all of its trials count and not the
    first alone."""

    run_id: int
    at: datetime
    accepted: bool
    system: tuple[tuple[str, str], ...] = ()
    primed: bool = False


class LeftOut(NamedTuple):
    run_id: int
    why: str


class Baseline(NamedTuple):
    """Run ids, oldest first. `recent`: what is compared with; `history`: recent and older ones; `anchor`:
    what must not be fallen behind; `primed`: runs among them of which every trial counts; `days`: distinct
    days of `recent`; `decision`: what a person said last, if it shaped this; `left_out`: runs that are no
    part of it, and why. `held` with no run that can be compared with, it is empty: nothing takes the place of
    what a person chose."""

    recent: tuple[int, ...]
    history: tuple[int, ...]
    anchor: tuple[int, ...]
    primed: tuple[int, ...]
    held: bool
    days: int
    decision: Decision | None
    left_out: tuple[LeftOut, ...]

    @property
    def provisional(self) -> bool:
        return self.days < FULL


def baseline(run: Night, earlier: Sequence[Night], decisions: Sequence[Decision]) -> Baseline:
    """What `run` is held against. `earlier`: the whole runs of its series before it, oldest first;
    `decisions`: oldest first."""
    pinned = _pinned(decisions)
    left_out = dict(_left_out(run, earlier, decisions))
    usable = [night for night in earlier if night.run_id not in left_out]
    accepted = [night for night in usable if _stands(night, pinned, _beginning(decisions))]
    held = pinned is not None and pinned.action == "hold"
    chosen = [night for night in accepted if pinned and night.run_id in pinned.run_ids]
    anchor = chosen if held else chosen or accepted[:RECENT]
    recent = anchor if held else accepted[-RECENT:]
    left_out |= {night.run_id: "not accepted: see its verdict" for night in usable if night not in accepted}
    return Baseline(
        recent=_ids(recent),
        history=_ids(anchor if held else accepted[-HISTORY:]),
        anchor=_ids(anchor),
        primed=_ids(night for night in accepted if night.primed),
        held=held,
        days=len({night.at.date() for night in recent}),
        decision=pinned or _beginning(decisions),
        left_out=tuple(_told(left_out, earlier, pinned if held else None)),
    )


def _told(left_out: Mapping[int, str], earlier: Sequence[Night], hold: Decision | None) -> Iterator[LeftOut]:
    """What a hold names stands last: where nothing is left, that is why."""
    named = hold.run_ids if hold else ()
    yield from (LeftOut(*item) for item in left_out.items() if item[0] not in named)
    yield from (LeftOut(*item) for item in left_out.items() if item[0] in named)
    known = {night.run_id for night in earlier}
    yield from (LeftOut(id, "held, and no earlier run of this series") for id in named if id not in known)


def _stands(night: Night, pinned: Decision | None, beginning: Decision | None) -> bool:
    """What a person named stands, whatever was said of it. Other runs that were worse do not, be they judged
    before a change was called intended: they may hold another one."""
    named = {id for decision in (pinned, beginning) if decision for id in decision.run_ids}
    return night.accepted or night.run_id in named


def _ids(nights: Iterable[Night]) -> tuple[int, ...]:
    return tuple(night.run_id for night in nights)


def _pinned(decisions: Sequence[Decision]) -> Decision | None:
    """The pin or hold in force: the last one, unless the baseline began anew after it."""
    shaping = [one for one in decisions if one.action in ("pin", "hold", "intended", "reset")]
    return shaping[-1] if shaping and shaping[-1].action in ("pin", "hold") else None


def _beginning(decisions: Sequence[Decision]) -> Decision | None:
    """The last decision that began the baseline anew."""
    return next((one for one in reversed(decisions) if one.action in ("intended", "reset")), None)


def _left_out(
    run: Night, earlier: Sequence[Night], decisions: Sequence[Decision]
) -> Iterator[tuple[int, str]]:
    beginning, excluded, pinned = _beginning(decisions), _excluded(decisions), _pinned(decisions)
    since = _since(beginning, (*earlier, run)) if beginning else None
    for night in earlier:
        if since and night.at < since and not (pinned and night.run_id in pinned.run_ids):
            yield night.run_id, f"before the baseline began anew: {beginning.reason if beginning else ''}"
        elif night.run_id in excluded:
            yield night.run_id, f"excluded: {excluded[night.run_id]}"
        elif other := _differing(night, run):
            yield night.run_id, other


def _since(beginning: Decision, nights: Sequence[Night]) -> datetime:
    """An intended change counts from the run that it came with, a reset from when it was said."""
    of_run = (night.at for night in nights if night.run_id in beginning.run_ids)
    return next(of_run, beginning.at) if beginning.action == "intended" else beginning.at


def _excluded(decisions: Sequence[Decision]) -> dict[int, str]:
    """Run -> why it is excluded."""
    excluded: dict[int, str] = {}
    for decision in decisions:
        for run_id in decision.run_ids:
            if decision.action == "exclude":
                excluded[run_id] = decision.reason
            elif decision.action == "include":
                excluded.pop(run_id, None)
    return excluded


def _differing(night: Night, run: Night) -> str | None:
    """Why answers of the two cannot be compared."""
    then, now = dict(night.system), dict(run.system)
    for name in sorted(then.keys() | now.keys()):
        if then.get(name) != now.get(name):
            return f"another {name}: {then.get(name, 'none')}, now {now.get(name, 'none')}"
    return None
