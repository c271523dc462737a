"""The life of alerts: what a sighting, a person or the time makes of them. Pure.

An alert is one cause. Whatever a run shows is put to an alert that is open already for the same series, the
same run, the same suspect or the same shared cause, and only what fits none of these begins a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from store.alert_groups import same_cause, same_fall, same_run, under
from store.alert_kinds import KINDS, SEVERITIES, AlertKind, at_least, worst
from store.alert_signals import UNTOLD, Signal, begun, fell_further, seen_again
from store.sightings import OF_A_VERDICT, STANDINGS, Key, Sighting

State = Literal["suspicion", "suspected", "open", "acknowledged", "resolved", "retracted", "intended", "died"]
Action = Literal[
    "untaken", "suspected", "died", "opened", "joined", "grew", "reopened", "resolved", "retracted",
    "acknowledged", "muted", "unmuted", "intended", "judged",
]  # fmt: skip
STANDING_STATES: tuple[State, ...] = ("suspicion", "suspected", "open", "acknowledged")
"""In which an alert is not over."""
TOLD_STATES: tuple[State, ...] = ("open", "acknowledged")
MACHINE = "memtrend"


class Cause(NamedTuple):
    """What alerts are grouped by. `suspect`: what changed that is suspected first, "" for nothing; `shared`:
    the control fell too."""

    run_id: int | None = None
    suspect: str = ""
    shared: bool = False


class Incident(NamedTuple):
    """An alert with what is wrong in it. `context`: what its newest bad run shows beside the evidence, such
    as losses by failure kind; `told_at`: when it became open, None for a suspicion."""

    state: State
    opened_at: datetime
    signals: tuple[Signal, ...]
    cause: Cause
    suspects: Sequence[Mapping[str, Any]] = ()
    context: Mapping[str, Any] = {}
    last_good_run_id: int | None = None
    tags: tuple[str, ...] = ()
    owner: str = "default"
    told_at: datetime | None = None
    acknowledged_by: str | None = None
    muted_until: datetime | None = None
    judged: str | None = None
    drill: bool = False
    id: int | None = None

    @property
    def standing(self) -> list[Signal]:
        """What is still wrong."""
        return [signal for signal in self.signals if not signal.closed]

    @property
    def shown(self) -> list[Signal]:
        """What it is told by: what is sure and still wrong, and not silenced; else what may be; once all is
        over, what was sure, else what might have been."""
        sure = [one for one in self.standing if one.standing == "sure" and not self.silences(one.key)]
        was = [one for one in self.signals if one.standing == "sure"]
        return sure or self.standing or was or list(self.signals)

    def silences(self, key: Key) -> bool:
        """Whether a failing backend is told in it that says nothing of its own metrics. What is more severe
        than that is heard: another suite of it may fail for weeks."""
        if key.kind == "improvement" or KINDS[key.kind].scope:
            return False
        return any(
            KINDS[one.key.kind].scope == "backend"
            and one.key.backend == key.backend
            and one.standing == "sure"
            and at_least(KINDS[one.key.kind].severity, KINDS[key.kind].severity)
            for one in self.standing
        )

    @property
    def kind(self) -> AlertKind:
        return worst([signal.key.kind for signal in self.shown])

    @property
    def cases(self) -> tuple[str, ...]:
        """Lost ones, each once, in the order of the signals."""
        return tuple(dict.fromkeys(case for signal in self.signals for case in signal.cases))


class Step(NamedTuple):
    """What became of an alert. `reason` is what a person gave, or ours in a few words."""

    action: Action
    reason: str = ""
    author: str = MACHINE
    run_id: int | None = None


class Turned(NamedTuple):
    """An alert as it stands now, and the steps that led there."""

    incident: Incident
    steps: tuple[Step, ...]


class Facts(NamedTuple):
    """What is known of the run that the sightings are of; of none, when time itself shows something. `again`:
    they are of a later look at that run, which is no further good run; `tags`: case -> its tags."""

    at: datetime
    run_id: int | None = None
    again: bool = False
    suspects: Sequence[Mapping[str, Any]] = ()
    context: Mapping[str, Any] = {}
    suspect: str = ""
    shared: bool = False
    last_good_run_id: int | None = None
    tags: Mapping[str, Sequence[str]] = {}
    owner: str = "default"
    drill: bool = False


# What is seen


def advance(known: Sequence[Incident], seen: Iterable[Sighting], facts: Facts) -> list[Turned]:
    """What the sightings of one run make of the alerts that stand, in whatever order they come. Only what
    changed is returned."""
    board = _Board(known, facts)
    for sighting in sorted(seen, key=_weight):
        board.put(sighting)
    return board.turned()


def _weight(sighting: Sighting) -> tuple[Any, ...]:
    """What is over first, then what silences others, then the worst."""
    kind = KINDS[sighting.key.kind]
    rank = (sighting.standing != "clear", not kind.scope, list(KINDS).index(kind.name))
    return (*rank, sighting.key, -STANDINGS.index(sighting.standing), -sighting.depth)


class _Board:
    """The alerts that stand, while the sightings of one run are put to them one after the other."""

    def __init__(self, known: Sequence[Incident], facts: Facts) -> None:
        self.facts = facts
        self.now = list(known)
        self.before: list[Incident | None] = list(known)
        self.joined: dict[int, list[Step]] = {}

    def put(self, sighting: Sighting) -> None:
        place = self._holding(sighting.key)
        if place is not None:
            self.now[place] = _seen_again(self.now[place], sighting, self.facts)
        elif sighting.standing != "clear":
            self._begin(sighting)

    def _holding(self, key: Key) -> int | None:
        for place, incident in enumerate(self.now):
            if incident.drill == self.facts.drill and any(one.key == key for one in incident.standing):
                return place
        return None

    def _begin(self, sighting: Sighting) -> None:
        signal = begun(sighting, self.facts.run_id)
        place = self._home(sighting)
        if place is None:
            self.now.append(_incident(signal, self.facts))
            self.before.append(None)
            return
        home = self.now[place]
        if home.silences(signal.key):
            signal = signal._replace(told=UNTOLD)
        self.now[place] = _with_facts(home._replace(signals=(*home.signals, signal)), self.facts)
        if self.before[place] is not None:
            step = Step("joined", f"{sighting.key.kind} belongs to it", run_id=self.facts.run_id)
            self.joined.setdefault(place, []).append(step)

    def _home(self, sighting: Sighting) -> int | None:
        """Where it belongs: the likeliest cause first."""
        fits = (under, same_fall, same_run, same_cause)
        return next(
            (
                place
                for fit in fits
                for place, incident in enumerate(self.now)
                if incident.drill == self.facts.drill and fit(incident, sighting, self.facts)
            ),
            None,
        )

    def turned(self) -> list[Turned]:
        found = [
            _settled(before, incident, self.joined.get(place, ()), self.facts)
            for place, (before, incident) in enumerate(zip(self.before, self.now, strict=True))
            if before != incident
        ]
        return [one for one in found if one is not None]


def _incident(signal: Signal, facts: Facts) -> Incident:
    cause = Cause(facts.run_id, facts.suspect, facts.shared)
    blank = Incident("suspicion", facts.at, (signal,), cause, owner=facts.owner, drill=facts.drill)
    return _with_facts(blank, facts)


def _with_facts(incident: Incident, facts: Facts) -> Incident:
    tags = {tag for case in incident.cases for tag in facts.tags.get(case, ())}
    return incident._replace(
        suspects=incident.suspects or tuple(facts.suspects),
        context={**(facts.context or incident.context), **_begun(incident)},
        last_good_run_id=incident.last_good_run_id or facts.last_good_run_id,
        tags=tuple(sorted({*incident.tags, *tags})),
    )


def _begun(incident: Incident) -> dict[str, Any]:
    """When the first bad run began, whichever came since."""
    return {"at": incident.context["at"]} if "at" in incident.context else {}


def _seen_again(incident: Incident, sighting: Sighting, facts: Facts) -> Incident:
    signals = tuple(
        seen_again(one, sighting, facts.run_id, again=facts.again)
        if one.key == sighting.key and not one.closed
        else one
        for one in incident.signals
    )
    seen = incident._replace(signals=signals)
    return seen if sighting.standing == "clear" else _with_facts(seen, facts)


# What becomes of it


def _settled(
    before: Incident | None, incident: Incident, joined: Sequence[Step], facts: Facts
) -> Turned | None:
    if not incident.standing:
        return _over(incident, facts)
    sure = [one for one in incident.standing if one.standing == "sure"]
    if sure and incident.state not in TOLD_STATES:
        return _opened(incident, joined, facts)
    if incident.state in TOLD_STATES:
        return _still_open(before or incident, incident, joined, facts)
    standing = max((one.standing for one in incident.standing), key=STANDINGS.index)
    state: State = "suspected" if standing == "suspected" else "suspicion"
    now = incident._replace(state=state)
    action = _came_to(now)
    is_news = before is None or action != _came_to(before)
    steps = (Step(action, run_id=facts.run_id),) if action and is_news else ()
    return Turned(now, (*steps, *joined))


def _came_to(incident: Incident) -> Action | None:
    """What became of a suspicion: a second look bore it out, or none is taken, since it would cost too
    much."""
    if incident.state == "suspected":
        return "suspected"
    left = any(one.content.get("untaken") for one in incident.standing)
    return "untaken" if left and incident.state == "suspicion" else None


def _opened(incident: Incident, joined: Sequence[Step], facts: Facts) -> Turned:
    told = _all_told(incident)._replace(state="open", told_at=facts.at)
    return Turned(told, (Step("opened", run_id=facts.run_id), *joined))


def _all_told(incident: Incident) -> Incident:
    signals = tuple(
        one if incident.silences(one.key) else one._replace(told=max(one.told, one.depth))
        for one in incident.signals
    )
    return incident._replace(signals=signals)


def _still_open(before: Incident, incident: Incident, joined: Sequence[Step], facts: Facts) -> Turned:
    """Told again only when something fell further, by a step of its kind, than when it was told last, or when
    it became more severe; what a failing backend silenced, once that is over."""
    loud = [one for one in incident.standing if not incident.silences(one.key)]
    then, now = (SEVERITIES.index(one.kind.severity) for one in (before, incident))
    if now <= then and not any(fell_further(signal) for signal in loud):
        return Turned(incident, tuple(joined))
    action: Action = "reopened" if incident.state == "acknowledged" else "grew"
    told = _all_told(incident)._replace(state="open", acknowledged_by=None)
    return Turned(told, (*joined, Step(action, run_id=facts.run_id)))


def _over(incident: Incident, facts: Facts) -> Turned:
    if incident.state not in TOLD_STATES:
        return Turned(incident._replace(state="died"), (Step("died", run_id=facts.run_id),))
    sure = [one for one in incident.signals if one.standing == "sure"]
    back = all(one.good < KINDS[one.key.kind].good for one in sure)
    how: Literal["retracted", "resolved"] = "retracted" if back else "resolved"
    return Turned(incident._replace(state=how), (Step(how, run_id=facts.run_id),))


# What people do


class NotPossible(ValueError):
    """What was asked of an alert that is in no state for it, or without the reason that it needs."""


def acknowledge(incident: Incident, who: str, reason: str = "") -> Turned:
    """Somebody has it: nobody is reminded, until it falls further. Raises `NotPossible`."""
    _refuse_over(incident, "acknowledged")
    if incident.state not in TOLD_STATES:
        raise NotPossible(f"it is {_a(incident.state)} as yet, of which no alarm was given: mute it instead")
    if incident.acknowledged_by == who:
        raise NotPossible(f"{who} has it already")
    held = incident._replace(state="acknowledged", acknowledged_by=who)
    return Turned(held, (Step("acknowledged", reason, who),))


def mute(incident: Incident, until: datetime, now: datetime, who: str, reason: str = "") -> Turned:
    """Nothing is said of it until then, whatever becomes of it. Raises `NotPossible`."""
    _refuse_over(incident, "muted")
    if until <= now:
        raise NotPossible(f"mute until {until:%Y-%m-%d %H:%M}: that is past")
    return Turned(incident._replace(muted_until=until), (Step("muted", reason, who),))


def unmute(incident: Incident, who: str = MACHINE) -> Turned:
    """Its time is over, or a person lifts it. Raises `NotPossible` where there is none to lift."""
    if incident.muted_until is None:
        raise NotPossible("it is not muted")
    return Turned(incident._replace(muted_until=None), (Step("unmuted", "", who),))


def settled(incident: Incident, suite: str, backend: str, who: str, reason: str) -> Turned | None:
    """The baseline of a series was begun anew, since a change was meant: what was held against the former one
    is over. None where there is nothing of it."""
    meant = {id(one) for one in incident.standing if one.key[:3] in _held(suite, backend)}
    if not meant:
        return None
    signals = tuple(one._replace(closed=True) if id(one) in meant else one for one in incident.signals)
    left = incident._replace(signals=signals)
    if left.standing:
        said = f"the change of {backend} on {suite} was meant: {reason}"
        return Turned(left, (Step("joined", said, who),))
    return Turned(left._replace(state="intended"), (Step("intended", reason, who),))


def _held(suite: str, backend: str) -> set[tuple[str, str, str]]:
    return {(kind, suite, backend) for kind in OF_A_VERDICT}


def meant(incident: Incident) -> list[Signal]:
    """What is wrong in it that a new baseline settles, the newest run of each series last."""
    return [one for one in incident.standing if one.key.kind in OF_A_VERDICT and one.run_id is not None]


def close(incident: Incident, state: Literal["resolved", "intended"], who: str, reason: str) -> Turned:
    """A person says that it is over, or was meant. Raises `NotPossible` without a reason."""
    _refuse_over(incident, state)
    if not reason.strip():
        raise NotPossible(f"{state}: say why, in a few words")
    signals = tuple(one._replace(closed=True) for one in incident.signals)
    return Turned(incident._replace(state=state, signals=signals), (Step(state, reason, who),))


def judge(incident: Incident, judged: Literal["real", "noise"], who: str, reason: str = "") -> Turned:
    """Whether the alarm was right, which the precision of all alarms is reckoned from. Noise needs a reason;
    a suspicion, which nobody was told of, is neither. Raises `NotPossible`."""
    if incident.told_at is None:
        raise NotPossible("nobody was told of it, so it was no alarm: neither real nor noise")
    if judged == "noise" and not reason.strip():
        raise NotPossible("noise: say why, in a few words")
    said = f"{judged}: {reason}" if reason.strip() else judged
    return Turned(incident._replace(judged=judged), (Step("judged", said, who),))


def unlooked(incident: Incident, why: str) -> Turned:
    """The look that would settle it is not taken, and it says so."""
    return Turned(incident._replace(context={**incident.context, "untaken": why}), ())


def _a(word: str) -> str:
    return f"a {word}" if word == "suspicion" else word


def _refuse_over(incident: Incident, what: str) -> None:
    if incident.state not in STANDING_STATES:
        raise NotPossible(f"it is {incident.state} already, so it cannot be {what}")
