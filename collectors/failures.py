"""Why a case was lost, from what came back and what the diagnosis found. Pure.

The kinds of a whole run, which no single case can show, are named in `symptoms.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from collectors.backend import Hit, Usage
from collectors.history import History
from collectors.matching import MatchTimeout
from collectors.scorers import Evidence, Want, differing, holds, wants
from collectors.suite import Memory, Plant, Probe

FORGOTTEN = "forgotten yet returned"
LEAKED = "leaked from another scope or user"
BLED = "bled into a new session"
SUPERSEDED = "superseded returned"
STALE = "stale fact first"
SPEAKER = "wrong speaker"
TIME = "wrong time"
UNWANTED = "unwanted returned"
LOST_BESIDE = "metadata or ids lost"
ALTERED = "text altered"
DUPLICATES = "duplicates"
UNSTABLE = "order unstable"
LIMIT = "limit not honoured"
LEG_DEAD = "leg dead"
LEG_INCOMPLETE = "leg incomplete"
NOT_STORED = "not stored"
TOO_MUCH = "too much forgotten"
REOPENED = "lost on reopen"
UNRETURNED = "stored but not returned"
TOO_LOW = "returned but too low"
MISSING = "not returned"
ERROR = "backend error"
JUDGE_ERROR = "judge error"

KINDS = {
    FORGOTTEN: "a memory that was forgotten, or whose user was",
    LEAKED: "a memory of another user, domain or namespace came back",
    BLED: "a memory of another session came back in one that should stand alone",
    SUPERSEDED: "the text that a memory had before it was amended came back",
    STALE: "what the answer has superseded came first",
    SPEAKER: "what one said came back as another's, or in place of another's",
    TIME: "an event came back with another time than its own",
    UNWANTED: "something forbidden came back that is nothing of the above",
    LOST_BESIDE: "the memory came back, and not what was planted beside its text: metadata, or its id",
    ALTERED: "the memory came back, and its text holds the answer no more",
    DUPLICATES: "a memory came back more often than it was planted, and took the place of others",
    UNSTABLE: "the same question asked again got another answer",
    LIMIT: "more came back than was asked for, or a number of its own",
    LEG_DEAD: "one index finds nothing, asked alone with the words of what is stored",
    LEG_INCOMPLETE: "one index, asked alone with the words of what is stored, finds other things",
    NOT_STORED: "the memory is not there, and is not kept when it is planted alone either",
    TOO_MUCH: "the memory is not there, and is kept when planted alone: something took it away",
    REOPENED: "the memory was there before the store was closed and opened again, and is not now",
    UNRETURNED: "the memory is there by its own words, and the question does not bring it back",
    TOO_LOW: "the question brings the memory back, below k or below what must not come first",
    MISSING: "the answer did not come back, and there was no diagnosis to say more",
    ERROR: "no answer at all after every retry",
    JUDGE_ERROR: "no pattern could judge the answer in time",
}
"""What each kind means. The kinds of a count stand with `Census`, those of a whole run in `symptoms.py`."""


class Diagnosis(NamedTuple):
    """What was learned by asking again, untimed, after a probe was lost. Ranks count from 1, None is "not
    found". `legs`: best wanted rank of each index asked alone; `counts`: memories by index, as the backend
    says; `planted`: as planted; `deep_rank`: best wanted rank among 100; `error`: why the diagnosis stopped;
    `usage`: what its calls took.

    Of memories that hold the answer, by id: `stored`, whether asking with its own text returns it; `changed`,
    what of it came back as something else ("other") or not at all ("missing"), by name; `alone`, what became
    of one that was not found when it was planted alone: "kept", "lost", or "reopened", which is kept until
    the store is closed and opened again. `own`: of each index asked with the text of one that is
    stored, whether it was "found", "missed", or nothing came back ("empty")."""

    legs: dict[str, int | None] = {}  # noqa: RUF012
    counts: dict[str, int] | None = None
    planted: int = 0
    deep_rank: int | None = None
    stored: dict[str, bool] = {}  # noqa: RUF012
    calls: int = 0
    ms: float = 0.0
    error: str | None = None
    usage: Usage = Usage()
    changed: dict[str, dict[str, str]] = {}  # noqa: RUF012
    own: dict[str, str] = {}  # noqa: RUF012
    alone: dict[str, str] = {}  # noqa: RUF012

    def with_alone(self, later: Diagnosis) -> Diagnosis:
        """With what was learned later, by planting alone, and what that took."""
        calls, ms, usage = self.calls + later.calls, self.ms + later.ms, self.usage + later.usage
        return self._replace(alone=later.alone, calls=calls, ms=ms, usage=usage)

    @property
    def unstored(self) -> list[str]:
        """Memories that hold the answer, were not found by their own text, and do not count either."""
        full = self.counts and self.planted and min(self.counts.values()) >= self.planted
        return [] if full else [id for id, found in self.stored.items() if not found]


def answers(probe: Probe, history: History) -> dict[Want, list[Memory]]:
    """For each want, the memories held that meet it."""
    return {want: holders(want, history) for want in wants(probe)}


def holders(want: Want, history: History) -> list[Memory]:
    """The memories held that meet one want."""
    if want.id is not None:
        return [history.held[want.id]] if want.id in history.held else []
    return [memory for memory in history.held.values() if want.met_by(memory.id, memory.text)]


def failure_kind(
    probe: Probe,
    evidence: Evidence,
    history: History,
    diagnosis: Diagnosis | None = None,
    *,
    ids: bool = False,
) -> str | None:
    """The kind of a lost case; None for one that passed. A leak outranks what is missing, and a hole in the
    store outranks what came back in its place: of several things that are wrong, the cause of the others.
    `ids`: the backend promises to give the planted ids back, so that one never planted is telling."""
    if all(holds(probe, evidence, expectation) for expectation in probe.expectations):
        return None
    if evidence.census:
        return evidence.census.fault(probe.leg)
    case = _Lost(probe, evidence, history, diagnosis or Diagnosis(error="not asked again"), ids)
    try:
        return next(kind for look in _LOOKS if (kind := look(case)))
    except MatchTimeout:  # on a memory that did not come back, so that the case itself could be judged
        return MISSING


class _Lost(NamedTuple):
    """A lost case; each method names the kind of one sort of loss, or None where there is no such loss."""

    probe: Probe
    evidence: Evidence
    history: History
    diagnosis: Diagnosis
    ids: bool

    # What came back and should not have

    def intruder(self) -> str | None:
        """Something that nobody who asks this should see. Where the answer is missing it may stand in its
        place, whether or not the case forbids it."""
        return next((kind for hit in self._suspects() if (kind := self._trespass(hit))), None)

    def _suspects(self) -> Iterator[Hit]:
        hits, k = self.evidence.hits, self.probe.k
        yield from (hits[rank] for rank in sorted(self._forbidden | self._strays))
        if self._unmet or self._limits:
            yield from hits[:k]

    def _trespass(self, hit: Hit) -> str | None:
        if _is_one_of(hit, self.history.forgotten.values()):
            return FORGOTTEN
        id, text = hit.id, hit.text  # asked of every memory for every hit, so without a call each
        mine = [memory for memory in self.history.held.values() if memory.id == id or memory.text == text]
        if not mine:
            old = self.history.replaced.get(hit.id) if self.ids else None
            known = self.history.knows(hit.id) or _is_one_of(hit, self.history.replaced.values())
            return LEAKED if self.ids and not known and old is None else None
        if any(self._covers(memory, session=True) for memory in mine):
            return None
        return BLED if any(self._covers(memory, session=False) for memory in mine) else LEAKED

    def _covers(self, memory: Memory, *, session: bool) -> bool:
        probe = self.probe
        asked = None if probe.all_sessions or not session else probe.session or self.history.session
        return (
            memory.user == probe.user
            and (not probe.domains or memory.domain in probe.domains)
            and asked in (None, memory.session)
        )

    @property
    def _limits(self) -> list[int]:
        """Numbers of hits that were not kept to."""
        broken = (e for e in self.probe.expectations if not holds(self.probe, self.evidence, e))
        return [e.n or 0 for e in broken if e.kind in ("at_most", "exactly")]

    @property
    def _forbidden(self) -> set[int]:
        first = {0} if self.evidence.unwanted_first else set()
        return first | {rank for rank in self.evidence.unwanted if rank < self.probe.k}

    @property
    def _strays(self) -> set[int]:
        """Ranks of the hits outside of the only ids that may come back."""
        allowed = [e.ids for e in self.probe.expectations if e.kind == "only"]
        hits = enumerate(self.evidence.hits)
        return {rank for rank, hit in hits if any(hit.id not in ids for ids in allowed)}

    def superseded(self) -> str | None:
        """What a memory said before it was amended came back, forbidden or in place of what it says now."""
        returned = {self.evidence.hits[rank].text for rank in self._forbidden}
        if self._unmet:
            returned |= {hit.text for hit in self.evidence.hits[: self.probe.k]}
        return SUPERSEDED if returned & self._replaced_texts else None

    def unwanted(self) -> str | None:
        if self.evidence.unwanted_first:
            return self._first()
        return UNWANTED if self._forbidden else None

    @property
    def _replaced_texts(self) -> set[str]:
        current = {memory.text for memory in self.history.held.values()}
        return {memory.text for memory in self.history.replaced.values()} - current

    def _first(self) -> str:
        """What must not come first did: what the answer has superseded, or another's word; else all that is
        wrong is the order, where the answer came back too."""
        first = self.history.of(self.evidence.hits[0])
        wanted = [memory for found in answers(self.probe, self.history).values() for memory in found]
        if first and wanted and all(first.role != memory.role for memory in wanted):
            return SPEAKER
        if first and self._is_superseded(first, wanted):
            return STALE
        return UNWANTED if self._unmet or not self.evidence.wants else TOO_LOW

    def _is_superseded(self, first: Memory, wanted: Iterable[Memory]) -> bool:
        """A case that says one thing, then another, and wants the later: only that is a story of a change. A
        memory of the background is older than most answers, and has nothing to do with them."""
        told = {memory.id for step in self.probe.story if isinstance(step, Plant) for memory in step.memories}
        later = (memory for memory in wanted if memory.id in told)
        return first.id in told and any(self.history.is_older(first, memory) for memory in later)

    # What came back damaged

    def damaged(self) -> str | None:
        """The answer is there, and is not what was planted; or is there twice, in the place of others."""
        if self._is_anonymous:
            return LOST_BESIDE
        if self._is_altered:
            return ALTERED
        return self._mislabelled() or (DUPLICATES if self._is_doubled else None)

    @property
    def _is_anonymous(self) -> bool:
        """A memory that is wanted by its id came back under one that was never planted."""
        wanted = {memory.text for want in self._unmet if want.id for memory in self._held(want)}
        return any(hit.text in wanted and not self.history.knows(hit.id) for hit in self.evidence.hits)

    @property
    def _is_altered(self) -> bool:
        """A memory that holds the answer came back, and its text does not hold it any more."""
        wanted = {memory.id for want in self._unmet if want.patterns for memory in self._held(want)}
        return any(hit.id in wanted for hit in self.evidence.hits[: self.probe.k])

    def _mislabelled(self) -> str | None:
        hits = self.evidence.hits[: self.probe.k]
        returned = {hit.id for hit in hits}
        wrong = [
            differing(expectation, hits)
            for expectation in self.probe.expectations
            if expectation.kind == "metadata" and returned.intersection(expectation.ids)
        ]
        if any(wrong):
            return _beside({name: value is None for values in wrong for name, value in values.items()})
        return None

    @property
    def _is_doubled(self) -> bool:
        """Some text came back more often than it was planted, or some id twice."""
        planted = Counter(memory.text for memory in self.history.held.values())
        texts = Counter(hit.text for hit in self.evidence.hits)
        ids = Counter(hit.id for hit in self.evidence.hits)
        more = any(n > planted[text] for text, n in texts.items() if text in planted)
        return more or (self.ids and any(n > 1 for n in ids.values()))

    # What the diagnosis found

    def cause(self) -> str | None:
        """What is wrong with the store itself: the answer is not in it or is damaged, or an index lacks it.
        A wrong memory that came back in its place is the consequence."""
        seen = self.diagnosis
        if seen.error:
            return None
        known = self._known
        if known and not any(seen.stored[id] for id in known):
            return self._unstored(known)
        changed = {name: how for id in known for name, how in seen.changed.get(id, {}).items()}
        if "text" in changed:
            return ALTERED
        if changed:
            return _beside({name: how == "missing" for name, how in changed.items()})
        return _broken_leg(seen.own)

    @property
    def _known(self) -> set[str]:
        """Memories that hold what is missing, and were asked for with their own text."""
        held = {memory.id for want in self._absent for memory in self._held(want)}
        return held & self.diagnosis.stored.keys()

    def _unstored(self, known: set[str]) -> str | None:
        if not known.intersection(self.diagnosis.unstored):
            return None
        fates = self.diagnosis.alone.values()
        if "reopened" in fates:
            return REOPENED
        return TOO_MUCH if "kept" in fates else NOT_STORED

    # What is missing

    @property
    def _unmet(self) -> dict[Want, tuple[int, ...]]:
        found = zip(self.evidence.wants, self.evidence.found, strict=True)
        return {want: ranks for want, ranks in found if not any(rank < self.probe.k for rank in ranks)}

    @property
    def _absent(self) -> list[Want]:
        """Wants that no hit meets, not even one below k."""
        return [want for want, ranks in self._unmet.items() if not ranks]

    def _held(self, want: Want) -> list[Memory]:
        return holders(want, self.history)

    def missing(self) -> str | None:
        """Sound in the store, and not where it should be in the answer."""
        if not self._unmet:
            return None
        if any(self._unmet.values()):
            return TOO_LOW
        if self.diagnosis.error or not self._known:
            return MISSING
        rank = self.diagnosis.deep_rank
        # Else it may be the rank of a want that was met.
        speaks = len(self._unmet) == len(self.evidence.wants)
        return TOO_LOW if speaks and rank is not None and rank > self.probe.k else UNRETURNED

    # What is left

    def miscounted(self) -> str:
        returned = len(self.evidence.hits)
        if any(returned < limit for limit in self._limits):
            return MISSING
        if self._limits and returned > self.probe.k:
            return LIMIT
        return UNSTABLE if self.probe.twice and self.evidence.again is not None else UNWANTED


_LOOKS = (
    *(_Lost.intruder, _Lost.superseded, _Lost.damaged, _Lost.cause),
    *(_Lost.unwanted, _Lost.missing, _Lost.miscounted),
)
"""What is looked for, in this order: what is certain and explains the rest comes first."""


def _beside(missing: Mapping[str, bool]) -> str:
    """What came back beside a text is not what was planted: by name, whether nothing came back at all."""
    if missing.get("role") is False:
        return SPEAKER
    return TIME if missing.get("at") is False else LOST_BESIDE


def _broken_leg(own: Mapping[str, str]) -> str | None:
    """One index does not find by its own words what is stored."""
    if "empty" in own.values():
        return LEG_DEAD
    return LEG_INCOMPLETE if "missed" in own.values() else None


def _is_one_of(hit: Hit, memories: Iterable[Memory]) -> bool:
    return any(hit.id == memory.id or hit.text == memory.text for memory in memories)
