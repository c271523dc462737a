"""What a whole run shows when it is held against a healthy one: which cases it lost, what else got worse,
and the kind of the failure. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import NamedTuple

from collectors import failures
from collectors.backend import Hit
from collectors.scenario import Answer, Played
from collectors.scorers import moment
from collectors.suite import Amend, Plant, Probe
from store.metrics import METRICS, NOISE_MS

QUERY_IGNORED = "query ignored"
SLOW = "too slow"
KINDS = {
    QUERY_IGNORED: "whatever was asked of the same memories, the same came back",
    SLOW: "nothing was lost but time",
}
"""Kinds that only a whole run shows, held against a healthy one."""

PLANTING_NOISE_MS = 2 * NOISE_MS
"""The same, of all the writes of a scenario."""

GENERIC = frozenset({failures.UNRETURNED, failures.TOO_LOW, failures.UNWANTED, failures.MISSING})
"""Kinds that say where an answer was lost and not why: many faults have these for a consequence."""


class Seen(NamedTuple):
    """One case of a played suite, as far as two runs are compared by it. `passed` None: not applicable.
    `place`: cases that agree in it were asked of the same memories, with the same k; `scenario`: those that
    agree in it were planted together; `first_at`: event time of the first hit, where that is told; `doubled`:
    some text or id came back twice; `altered`: some memory of the case's own came back in other words, None
    where none came back by its id; `unstable` None: asked once. Times in ms: `plant_ms` and `settle_ms` are
    of the whole scenario."""

    suite: str
    case: str
    tags: tuple[str, ...]
    critical: bool
    passed: bool | None
    failure: str | None
    query: str
    k: int
    place: tuple[object, ...]
    scenario: str
    returned: tuple[str, ...]
    first_at: datetime | None
    latency_ms: float | None
    plant_ms: float | None
    settle_ms: float | None
    retried: bool
    doubled: bool
    altered: bool | None
    unstable: bool | None


def seen(answer: Answer, suite: str, scenario: str, played: Played) -> Seen:
    probe, observation = answer.probe, answer.observation
    texts = [hit.text for hit in observation.hits]
    ids = tuple(hit.id for hit in observation.hits)
    return Seen(
        suite=suite,
        case=probe.case,
        tags=probe.tags,
        critical=probe.critical,
        passed=None if observation.skipped else answer.scores.get("pass") == 1.0,
        failure=answer.failure,
        query=probe.query,
        k=probe.k,
        place=(suite, scenario, probe.user, probe.domains, probe.session, probe.leg, probe.k),
        scenario=scenario,
        returned=ids,
        first_at=next((moment(hit.metadata.get("at")) for hit in observation.hits), None),
        latency_ms=observation.latency_ms,
        plant_ms=played.plant_ms,
        settle_ms=played.settle_ms,
        retried=observation.attempts > 1 or observation.error is not None,
        doubled=len(set(texts)) < len(texts) or len(set(ids)) < len(ids),
        altered=_altered(probe, observation.hits),
        unstable=observation.again is not None if probe.twice else None,
    )


def _altered(probe: Probe, hits: Sequence[Hit]) -> bool | None:
    told: dict[str, set[str]] = defaultdict(set)
    for step in probe.story:
        if isinstance(step, Plant | Amend):
            for memory in step.memories if isinstance(step, Plant) else [step]:
                told[memory.id].add(memory.text)
    own = [hit for hit in hits if hit.id in told]
    return any(hit.text not in told[hit.id] for hit in own) if own else None


class Symptoms(NamedTuple):
    """`lost`: cases that the healthy backend passes and this one does not; `beyond`: metrics that changed by
    more than the smallest change that matters, old and new; `kind` None: nothing is wrong."""

    lost: tuple[Seen, ...]
    beyond: Mapping[str, tuple[float, float]]
    kind: str | None

    @property
    def critical(self) -> int:
        return sum(one.critical for one in self.lost)

    @property
    def tags(self) -> list[str]:
        """Of the lost cases, the most frequent first."""
        return [tag for tag, _ in Counter(tag for one in self.lost for tag in one.tags).most_common()]

    @property
    def detected(self) -> bool:
        return self.critical > 0 or len(self.lost) >= 2 or bool(self.beyond)


class Pair(NamedTuple):
    """The cases that were asked of both, in the same order."""

    healthy: Sequence[Seen]
    other: Sequence[Seen]

    @property
    def both(self) -> list[tuple[Seen, Seen]]:
        return list(zip(self.healthy, self.other, strict=True))

    @property
    def lost(self) -> tuple[Seen, ...]:
        return tuple(new for old, new in self.both if _is_lost(old, new))


def _is_lost(old: Seen, new: Seen) -> bool:
    return bool(old.passed and not new.passed)


def symptoms(healthy: Sequence[Seen], other: Sequence[Seen]) -> Symptoms:
    """Of the same suites, played on two backends. What is not applicable to either is left out."""
    known = {(one.suite, one.case): one for one in other if one.passed is not None}
    asked = [one for one in healthy if one.passed is not None and (one.suite, one.case) in known]
    pair = Pair(asked, [known[one.suite, one.case] for one in asked])
    beyond = _beyond(pair)
    return Symptoms(pair.lost, beyond, _kind(pair, beyond))


# Metrics


def _beyond(pair: Pair) -> dict[str, tuple[float, float]]:
    found = {name: (measure(pair.healthy), measure(pair.other)) for name, measure in _MEASURES.items()}
    beyond = {name: (old, new) for name, (old, new) in found.items() if _matters(name, old, new)}
    return beyond | _slower_planting(pair)


def _slower_planting(pair: Pair, most: float = 0.85) -> dict[str, tuple[float, float]]:
    """What planting takes, medians of all scenarios, where most of them took longer than they did. By the
    scenario: the time of a call that plants a hundred memories is nothing to each, and planting is so quick
    that a busy machine doubles the median by itself, and hardly ever nearly all."""
    known = {(old.suite, old.scenario): (old.plant_ms, new.plant_ms) for old, new in pair.both}
    times = [(old, new) for old, new in known.values() if old is not None and new is not None]
    slower = sum(_matters("plant_ms", old, new) and new - old > PLANTING_NOISE_MS for old, new in times)
    if not times or slower < most * len(times):
        return {}
    return {"plant_ms": (median(old for old, _ in times), median(new for _, new in times))}


def _matters(name: str, old: float, new: float) -> bool:
    metric = METRICS[name]
    if metric.unit == "ms":
        return new - old > max(metric.smallest_change * old, NOISE_MS)
    change = abs(new - old) if name == "returned_n" else new - old  # too few hits are as telling as too many
    return change > metric.smallest_change


def _share(of: Sequence[Seen], holds: Callable[[Seen], bool | None]) -> float:
    told = [value for one in of if (value := holds(one)) is not None]
    return sum(told) / len(told) if told else 0.0


def _median(of: Sequence[Seen], time: Callable[[Seen], float | None]) -> float:
    return median([ms for one in of if (ms := time(one)) is not None] or [0.0])


_MEASURES: Mapping[str, Callable[[Sequence[Seen]], float]] = {
    "recall_ms": lambda of: _median(of, lambda one: one.latency_ms),
    "settle_ms": lambda of: _median(of, lambda one: one.settle_ms),
    "first_try_errors": lambda of: _share(of, lambda one: one.retried),
    "returned_n": lambda of: sum(len(one.returned) for one in of) / max(len(of), 1),
    "unstable": lambda of: _share(of, lambda one: one.unstable),
}


# The kind


def _kind(pair: Pair, beyond: Mapping[str, tuple[float, float]]) -> str | None:
    """What shows in most answers is named before what the lost cases were lost by, and that before what costs
    no case."""
    for kind, shows in _SIGNS.items():
        if shows(pair, beyond):
            return kind
    return _of_the_lost([one.failure for one in pair.lost if one.failure]) or _of_the_rest(beyond)


def _of_the_rest(beyond: Mapping[str, tuple[float, float]]) -> str | None:
    if "unstable" in beyond:
        return failures.UNSTABLE
    if "returned_n" in beyond:
        return failures.LIMIT
    return SLOW if beyond else None


def _of_the_lost(kinds: Sequence[str]) -> str | None:
    """The most frequent kind, of equals the gravest; generic ones give way to others that a quarter of the
    losses have."""
    telling = [kind for kind in kinds if kind not in GENERIC]
    if 4 * len(telling) >= len(kinds):
        kinds = telling
    known = [kind for kind in kinds if kind != failures.MISSING] or kinds
    grave = list(failures.KINDS)[::-1]
    weight = {kind: (n, grave.index(kind) if kind in grave else -1) for kind, n in Counter(known).items()}
    return max(weight, key=lambda kind: weight[kind], default=None)


def _erring(pair: Pair, beyond: object) -> bool:
    """Calls fail and work when made again. Those that fail for good have that for the kind of their loss."""
    again = [_share(of, lambda one: bool(one.retried and one.passed)) for of in pair]
    return _matters("first_try_errors", *again)


def _limit(pair: Pair, beyond: object) -> bool:
    """Most answers hold more than was asked for, or all the same number whatever was asked for, or all as
    many fewer."""
    over = [_share(of, lambda one: len(one.returned) > one.k) for of in pair]
    return over[1] - over[0] > 0.5 or _is_constant(pair.other) or _is_short_by_the_same(pair)


def _is_constant(of: Sequence[Seen], most: float = 0.8) -> bool:
    numbers = Counter(len(one.returned) for one in of)
    if not numbers:
        return False
    number, times = numbers.most_common(1)[0]
    more, fewer = any(one.k > number for one in of), any(one.k < number == len(one.returned) for one in of)
    return number > 0 and times >= most * len(of) and more and fewer


def _is_short_by_the_same(pair: Pair, most: float = 0.8) -> bool:
    """Whatever number the healthy backend gives when asked for it, most answers lack the same few: of a share
    that is cut off, a larger number would lack more."""
    short: dict[int, Counter[int]] = defaultdict(Counter)
    for old, new in pair.both:
        if len(old.returned) == old.k > 1:  # of one, one too few is all
            short[old.k][old.k - len(new.returned)] += 1
    usual = [numbers.most_common(1)[0] for numbers in short.values()]
    fewer, often = {few for few, _ in usual}, sum(times for _, times in usual)
    enough = often >= most * sum(numbers.total() for numbers in short.values())
    return len(usual) > 1 and len(fewer) == 1 and min(fewer) > 0 and enough


def _query_ignored(pair: Pair, beyond: object, several: int = 3) -> bool:
    """Wherever several questions were asked of the same memories, all got the same answer."""
    places: dict[tuple[object, ...], list[Seen]] = defaultdict(list)
    for one in pair.other:
        places[one.place].append(one)
    asked = [group for group in places.values() if len({one.query for one in group}) >= several]
    alike = [len({one.returned for one in group}) == 1 and bool(group[0].returned) for group in asked]
    return bool(alike) and sum(alike) > len(alike) / 2


def _reads_otherwise(pair: Pair, beyond: object) -> bool:
    """Most answers hold a memory in other words than it was planted in."""
    found = [_share(of, lambda one: one.altered) for of in pair]
    return found[1] - found[0] > 0.5


def _older_first(pair: Pair, beyond: object, several: int = 5, most: float = 0.9) -> bool:
    """Wherever a memory was put before the one that should come first, it was an older one, and cases were
    lost by that."""
    put_first = [(old, new) for old, new in pair.both if _is_overtaken(old, new)]
    older = [(old, new) for old, new in put_first if _age(new) < _age(old)]
    by_that = sum(_is_lost(old, new) for old, new in older)
    return len(put_first) >= several and len(older) >= most * len(put_first) and 2 * by_that > len(pair.lost)


def _is_overtaken(old: Seen, new: Seen) -> bool:
    """What comes first in the healthy answer came back in the other too, after a memory of another time."""
    moved = new.returned[:1] != old.returned[:1] and set(old.returned[:1]) <= set(new.returned)
    return moved and None not in (old.first_at, new.first_at) and _age(old) != _age(new)


def _age(one: Seen) -> float:
    return one.first_at.timestamp() if one.first_at else 0.0


def _doubled(pair: Pair, beyond: object, share: float = 0.2) -> bool:
    found = [_share(of, lambda one: one.doubled) for of in pair]
    return found[1] - found[0] > share


_SIGNS: Mapping[str, Callable[[Pair, Mapping[str, tuple[float, float]]], bool]] = {
    failures.ERROR: _erring,
    failures.LIMIT: _limit,
    QUERY_IGNORED: _query_ignored,
    failures.DUPLICATES: _doubled,
    failures.ALTERED: _reads_otherwise,
    failures.STALE: _older_first,
}
