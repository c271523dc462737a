"""A suite as the rules see it: each question beside the memories that could answer it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import regex

from collectors.history import History
from collectors.lint.patterns import runs_away
from collectors.matching import Haystack, MatchTimeout, folded, matches, shape
from collectors.scorers import Want, wants
from collectors.suite import Memory, Plant, Probe, Scenario, Step, Suite

PATIENCE_S = 0.5
"""How long the texts on which a pattern is slow may keep it: half of what a run allows for one of them."""
SLOW_S = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Memories that belong together, and their texts to look through."""

    memories: tuple[Memory, ...]
    texts: Haystack

    def __len__(self) -> int:
        return len(self.memories)


class Matcher:
    """Matches each pattern against each distinct text once, and gives up a pattern that takes longer
    than `PATIENCE_S` in all. `broken`: pattern -> the rule that it breaks."""

    def __init__(self) -> None:
        self.broken: dict[str, str] = {}
        self._known: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        self._hits: dict[tuple[str, Pool], list[int]] = {}
        self._spent: defaultdict[str, float] = defaultdict(float)

    def hits(self, pattern: str, pool: Pool) -> list[int]:
        """Places in the pool of the memories that the pattern finds."""
        if pattern in self.broken:
            return []
        key = (pattern, pool)
        if key not in self._hits:
            among = pool.texts.holding(pattern)
            self._hits[key] = [place for place in among if self.finds(pattern, pool.memories[place].text)]
        return self._hits[key]

    def finds(self, pattern: str, text: str) -> bool:
        known = self._known[pattern]
        if text not in known:
            known[text] = pattern not in self.broken and self._finds(pattern, text)
        return known[text]

    def examine(self, pattern: str) -> None:
        """Notice a pattern that cannot be compiled, or that runs away on some text."""
        self.finds(pattern, "")
        if not shape(pattern).plain and runs_away(pattern):
            self.broken.setdefault(pattern, "catastrophic-regex")

    def _finds(self, pattern: str, text: str) -> bool:
        if shape(pattern).plain:
            return matches(pattern, text)
        started = time.perf_counter()
        try:
            return matches(pattern, text, max(PATIENCE_S - self._spent[pattern], 0.001))
        except MatchTimeout:
            self.broken[pattern] = "catastrophic-regex"
        except (regex.error, RecursionError):
            self.broken[pattern] = "invalid-regex"
        finally:
            took = time.perf_counter() - started
            self._spent[pattern] += took if took > SLOW_S else 0.0
        return False


_LETTER = r"\p{Lu}\p{Ll}_"
_BEGINS = rf"(?:(?=\d)(?<!\d)(?<!\d[.,:])|(?=[{_LETTER}])(?<![{_LETTER}\d])|(?![{_LETTER}\d]))"
_ENDS = rf"(?:(?<=\d)(?!\d|[.,:]\d)|(?<=[{_LETTER}])(?![{_LETTER}\d])|(?<![{_LETTER}\d]))"


def whole(pattern: str) -> str:
    """The pattern, where it begins and ends with a word or a number; 45 does in 45d. Scripts without
    capitals may write without spaces, and have no such ends."""
    return f"{_BEGINS}(?:{pattern}){_ENDS}"


@dataclass(slots=True, eq=False)
class Case:
    """One question. `pool`: what may answer it, by its user, domains and session. `around`: all that its
    namespace held before, of anyone, what was forgotten or reworded too. `foreign`: ids that other cases
    planted there. `blind`: it is asked of memories that the suite does not know."""

    probe: Probe
    pool: Pool
    around: Pool
    own: frozenset[str]
    foreign: frozenset[str]
    matcher: Matcher
    blind: bool = False
    wants: tuple[Want, ...] = field(init=False)
    _met: dict[Want, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wants = wants(self.probe)

    @property
    def patterns(self) -> list[str]:
        return list(dict.fromkeys(p for e in self.probe.expectations for p in e.patterns))

    def met(self, want: Want) -> tuple[int, ...]:
        """Places in `pool` of the memories that give what is wanted."""
        if want not in self._met:
            by_id = (
                {place for place, m in enumerate(self.pool.memories) if m.id == want.id} if want.id else ()
            )
            by_pattern = (
                place for pattern in want.patterns for place in self.matcher.hits(pattern, self.pool)
            )
            self._met[want] = tuple(sorted({*by_id, *by_pattern}))
        return self._met[want]

    def is_met_in_part(self, want: Want, memory: Memory) -> bool:
        """Whether a memory gives what is wanted only inside of a longer word or number."""
        return memory.id != want.id and not any(
            self.matcher.finds(whole(pattern), memory.text) for pattern in want.patterns
        )

    def is_broken(self, want: Want) -> bool:
        return any(pattern in self.matcher.broken for pattern in want.patterns)

    def is_forbidden(self, memory: Memory, kind: str) -> bool:
        """Whether the memory may not come back ("unwanted"), or not first ("unwanted_first")."""
        return any(
            memory.id in expectation.ids
            or any(self.matcher.finds(pattern, memory.text) for pattern in expectation.patterns)
            for expectation in self.probe.expectations
            if expectation.kind == kind
        )

    def is_left_out(self, memory: Memory) -> bool:
        """Whether the memory is none of those that alone may come back."""
        return any(e.kind == "only" and memory.id not in e.ids for e in self.probe.expectations)


class View:
    """All cases of a suite, each with its memories."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.matcher = Matcher()
        self.said: list[str] = []
        self._folded: dict[str, str] = {}

    @cached_property
    def cases(self) -> list[Case]:
        return [case for scenario in self.suite.scenarios for case in self._cases(scenario)]

    @cached_property
    def broken(self) -> dict[str, str]:
        """Pattern -> the rule that it breaks, once all were tried."""
        for case in self.cases:
            for pattern in case.patterns:
                self.matcher.examine(pattern)
                self.matcher.hits(pattern, case.around)
        return self.matcher.broken

    def _cases(self, scenario: Scenario) -> Iterator[Case]:
        told = {probe.case: _planted(probe.story) for probe in scenario.probes}
        everyone = frozenset().union(*told.values())
        history, moment = History(), _Moment(self)
        for step in scenario.steps:
            if isinstance(step, Probe):
                own = told[step.case]
                pool, around = moment.pool(history, step), moment.around(history)
                blind = scenario.standing is not None
                yield Case(step, pool, around, own, everyone - own, self.matcher, blind)
            else:
                history.follow(step)
                moment = _Moment(self)

    def pool_of(self, memories: Sequence[Memory]) -> Pool:
        texts = []
        for memory in memories:
            if memory.text not in self._folded:
                self._folded[memory.text] = folded(memory.text)
            texts.append(self._folded[memory.text])
        return Pool(tuple(memories), Haystack(texts))


def _planted(steps: Sequence[Step]) -> frozenset[str]:
    return frozenset(memory.id for step in steps if isinstance(step, Plant) for memory in step.memories)


class _Moment:
    """Pools between two changes of a scenario, made once for each scope."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.pools: dict[object, Pool] = {}

    def pool(self, history: History, probe: Probe) -> Pool:
        session = None if probe.all_sessions else probe.session or history.session
        scope = (probe.user, probe.domains, session)
        if scope not in self.pools:
            around = self.around(history)
            within = [
                memory
                for memory in history.held.values()
                if memory.user == probe.user
                and (not probe.domains or memory.domain in probe.domains)
                and session in (None, memory.session)
            ]
            self.pools[scope] = around if len(within) == len(around) else self.view.pool_of(within)
        return self.pools[scope]

    def around(self, history: History) -> Pool:
        if None not in self.pools:
            past = (*history.forgotten.values(), *history.replaced.values())
            self.pools[None] = self.view.pool_of([*history.held.values(), *past])
        return self.pools[None]
