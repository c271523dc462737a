"""Reader of golden suites: JSONL cases, and the worlds they are asked in.

Ask-only cases that name a world are planted together with it, some `GROUP_SIZE` to a scenario; every other
case has a scenario, and so a namespace, of its own.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from collectors.suite import (
    DEFAULT_USER,
    Amend,
    Expectation,
    Forget,
    ForgetUser,
    Memory,
    Plant,
    Probe,
    Problem,
    Reopen,
    Scenario,
    Session,
    Step,
    SuiteConfig,
    SuiteError,
    digest,
)
from collectors.suites import golden_format as form

SHIPPED_WORLDS = Path(__file__).parent / "golden" / "worlds"
GROUP_SIZE = 40
"""Ask-only cases that share one planting of their world: a failed plant or a kill costs one group."""


class Source(NamedTuple):
    """One case as written: its place, its raw fields (which are hashed) and its parsed form."""

    where: str
    raw: dict[str, Any]
    case: form.Case


class World:
    """Background memories that resemble the answers. Its own user is that of its first line."""

    def __init__(self, name: str, memories: Sequence[Memory]) -> None:
        self.name = name
        self.memories = tuple(memories)
        self.user = memories[0].user

    @cached_property
    def digest(self) -> str:
        return _digest_memories(self.memories)

    def near(self, patterns: Sequence[str]) -> tuple[Memory, ...]:
        return tuple(memory for memory in self.memories if any(fnmatchcase(memory.id, p) for p in patterns))


def read(config: SuiteConfig) -> tuple[Scenario, ...]:
    """Scenarios of the suite's file, or of the `*.jsonl` files of its folder in name order. Raises
    `SuiteError` with all that is wrong, and the scenarios of the cases that are not."""
    problems: list[Problem] = []
    sources = [source for source in _read_cases(config, problems) if _selected(source.case.tags, config)]
    worlds = _read_worlds(config, sources, problems)
    scenarios = _scenarios(list(_compiled(sources, worlds, problems)))
    problems += [problem for scenario in scenarios for problem in _doubled_memories(config, scenario)]
    if problems:
        raise refusal(f"suite {config.name}", problems, scenarios)
    return scenarios


def _selected(tags: Sequence[str], config: SuiteConfig) -> bool:
    return set(config.only) <= set(tags) and not set(config.without) & set(tags)


# Files


def _read_cases(config: SuiteConfig, problems: list[Problem]) -> list[Source]:
    """The well-formed cases; of two with one id the first."""
    files = sorted(config.path.glob("*.jsonl")) if config.path.is_dir() else [config.path]
    if not files:
        raise SuiteError(f"suite {config.name}: no *.jsonl file in {config.path}")
    sources: dict[str, Source] = {}
    for where, raw in _lines(files, problems):
        try:
            source = Source(where, raw, form.Case.model_validate(raw))
        except ValidationError as error:
            problems += _malformed(where, raw, error)
            continue
        first = sources.setdefault(source.case.id, source)
        if first is not source:
            told = f"id: {source.case.id!r} stands in {first.where} already"
            problems.append(Problem(where, told, "duplicate-id", source.case.id))
    return list(sources.values())


def _malformed(where: str, raw: Mapping[str, Any], error: ValidationError) -> list[Problem]:
    case = raw.get("id")
    name = case if isinstance(case, str) else ""
    return [Problem(where, wrong.text, wrong.rule, name) for wrong in form.explain(error)]


def _read_worlds(config: SuiteConfig, sources: Sequence[Source], problems: list[Problem]) -> dict[str, World]:
    own = (config.path if config.path.is_dir() else config.path.parent) / "worlds"
    worlds: dict[str, World] = {}
    for name, where in _worlds_named(sources).items():
        try:
            worlds[name] = read_world(_world_file(own, name, where), name)
        except SuiteError as error:
            problems += error.problems
    return worlds


def _world_file(own: Path, name: str, where: str) -> Path:
    """Beside the suite, else among those we ship. Raises `SuiteError`; `where` names what asked for it."""
    paths = [folder / f"{name}.jsonl" for folder in (own, SHIPPED_WORLDS)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        shipped = ", ".join(sorted(path.stem for path in SHIPPED_WORLDS.glob("*.jsonl")))
        raise SuiteError.at(where, f"world: {name!r} should be a file {paths[0]}, or one of ours: {shipped}")
    return path


def _worlds_named(sources: Sequence[Source]) -> dict[str, str]:
    named: dict[str, str] = {}
    for source in sources:
        if source.case.world:
            named.setdefault(source.case.world, source.where)
    return named


def read_world(path: Path, name: str) -> World:
    """Raises `SuiteError`."""
    problems: list[Problem] = []
    memories: dict[str, Memory] = {}
    user = DEFAULT_USER
    for place, raw in _lines([path], problems):
        try:
            write = form.Write.model_validate(raw)
        except ValidationError as error:
            problems += _malformed(place, raw, error)
            continue
        user = (write.user or user) if not memories else user
        if write.id is None or write.id in memories:
            problems.append(Problem(place, "id: every memory of a world needs an id of its own"))
            continue
        memories[write.id] = _memory(write, write.id, user)
    if not memories and not problems:
        problems.append(Problem(str(path), "holds no memories"))
    if problems:
        raise refusal(f"world {name}", problems)
    return World(name, list(memories.values()))


def _unread(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    line = error.object[: error.start].count(b"\n") + 1
    return f"line {line} is not UTF-8 text; save the file as UTF-8"


def _lines(files: Sequence[Path], problems: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in files:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise SuiteError.at(str(path), "does not exist") from None
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(str(path), f"cannot be read: {_unread(error)}"))
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                value = form.parsed(line)
            except (ValueError, RecursionError) as error:
                told = f"line: should be one JSON object, on one line: {error}"
                problems.append(Problem(f"{path}:{number}", told))
                continue
            if isinstance(value, dict):
                yield f"{path}:{number}", value
            else:
                told = f"line: should be a JSON object, not {type(value).__name__}"
                problems.append(Problem(f"{path}:{number}", told))


def refusal(
    what: str, problems: Sequence[Problem], rest: tuple[Scenario, ...] = (), shown: int = 20
) -> SuiteError:
    more = [f"and {len(problems) - shown} more"] if len(problems) > shown else []
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{what}: {count}", *map(str, problems[:shown]), *more]
    return SuiteError("\n".join(lines), problems, rest)


# Scenarios


class Compiled(NamedTuple):
    """A case's own steps, its probes among them, with the ids of its memories made unique, and what stands
    beside them."""

    source: Source
    world: World | None
    background: Sequence[Memory]
    steps: list[Step]
    probes: list[Probe]


def _compiled(
    sources: Sequence[Source], worlds: Mapping[str, World], problems: list[Problem]
) -> Iterator[Compiled]:
    for source in sources:
        world = worlds.get(source.case.world or "")
        if source.case.world and not world:
            continue  # which is told already
        try:
            yield _compile(source, world)
        except SuiteError as error:
            problems += error.problems


def _scenarios(cases: Sequence[Compiled]) -> tuple[Scenario, ...]:
    shared: dict[str, list[Compiled]] = defaultdict(list)
    lone: list[Scenario] = []
    for case in cases:
        if case.source.case.own_namespace or not case.world:
            lone.append(_lone_scenario(case))
        else:
            shared[case.world.name].append(case)
    return (*(group for _, members in sorted(shared.items()) for group in _grouped(members)), *lone)


def _grouped(members: Sequence[Compiled]) -> Iterator[Scenario]:
    """Cases of one world, by rendezvous hashing: a new case moves no other, until a group is added and
    draws its share."""
    count = ceil(len(members) / GROUP_SIZE)
    groups: dict[int, list[Compiled]] = defaultdict(list)
    for member in members:
        groups[max(range(count), key=lambda group: _weight(group, member.source.case.id))].append(member)
    for group, cases in sorted(groups.items()):
        world = cases[0].world
        assert world is not None, "grouped are the cases of one world"
        planted = tuple(memory for case in cases for memory in _planted(case.steps))
        probes = tuple(probe for case in cases for probe in case.probes)
        yield Scenario(f"{world.name}-{group + 1}", (Plant((*world.memories, *planted)), *probes))


def _weight(group: int, case: str) -> bytes:
    return hashlib.sha256(f"{group}:{case}".encode()).digest()


def _planted(steps: Sequence[Step]) -> Iterator[Memory]:
    return (memory for step in steps if isinstance(step, Plant) for memory in step.memories)


def _lone_scenario(case: Compiled) -> Scenario:
    first = (Plant(tuple(case.background)),) if case.background else ()
    return Scenario(case.source.case.id, (*first, *case.steps))


def _background(source: Source, world: World) -> tuple[Memory, ...]:
    if not source.case.near:
        return world.memories
    idle = [pattern for pattern in source.case.near if not world.near([pattern])]
    if idle:
        told = f"near: nothing in world {world.name!r} matches {', '.join(idle)}"
        raise SuiteError.at(source.where, told, case=source.case.id)
    return world.near(source.case.near)


def _doubled_memories(config: SuiteConfig, scenario: Scenario) -> Iterator[Problem]:
    """Two ids that differ as written may be one with the case's id before them: a/b + c and a + b/c."""
    planted = Counter(memory.id for memory in _planted(scenario.steps))
    doubled = sorted(id for id, n in planted.items() if n > 1)
    if doubled:
        told = (
            f"{', '.join(doubled)} would be planted twice in scenario {scenario.id!r}; "
            "ids of cases and memories should differ without their slashes too"
        )
        yield Problem(str(config.path), told, "duplicate-id")


def _compile(source: Source, world: World | None) -> Compiled:
    background = _background(source, world) if world else ()
    compiler = _Compiler(source, world, background)
    compiler.compile()
    return Compiled(source, world, background, compiler.steps, compiler.probes)


class _Compiler:
    """Walks the steps of one case in order; `ids` grows as memories are planted."""

    def __init__(self, source: Source, world: World | None, background: Sequence[Memory]) -> None:
        self.where, self.raw, self.case = source
        self.user = world.user if world else DEFAULT_USER
        self.ids = {memory.id: memory.id for memory in background}
        self.around = len(self.ids)
        self.background = _describe(world, background)
        self.context = world.digest if world and not self.case.own_namespace else _digest_memories(background)
        self.story: list[Step] = []
        self.steps: list[Step] = []
        self.probes: list[Probe] = []

    def compile(self) -> None:
        written = self.case.steps
        asked = sum(isinstance(step, form.ProbeStep) for step in written)
        for step in written:
            if isinstance(step, form.ProbeStep):
                self._ask(step, step.probe, f"/{len(self.probes) + 1}" if asked > 1 else "")
            else:
                self._do(self._step(step))
        if not written:
            self._compile_short_form()

    def _compile_short_form(self) -> None:
        if self.case.writes:
            self._do(Plant(tuple(self._plant(write) for write in self.case.writes)))
        self._ask(self.case, self.case.query or "")

    def _do(self, step: Step) -> None:
        self.steps.append(step)
        self.story.append(step)

    def _ask(self, asked: form.Asked, query: str, suffix: str = "") -> None:
        self.probes.append(self._probe(asked, query, suffix))
        self.steps.append(self.probes[-1])

    def _step(self, step: form.Line) -> Step:
        match step:
            case form.PlantStep(plant=writes):
                return Plant(tuple(self._plant(write) for write in writes))
            case form.AmendStep(amend=id, text=text):
                return Amend(self._known(id, "amend"), text)
            case form.ForgetStep(forget=ids):
                return Forget(tuple(self._known(id, "forget") for id in ids))
            case form.ForgetUserStep(forget_user=user):
                return ForgetUser(user)
            case form.SessionStep(session=id):
                return Session(id)
            case _:
                return Reopen()

    def _plant(self, write: form.Write) -> Memory:
        name = write.id or f"w{len(self.ids) - self.around + 1}"
        if name in self.ids:
            raise self._refusal(f"id: {name!r} is planted already; give this memory another id")
        self.ids[name] = f"{self.case.id}/{name}"
        return _memory(write, self.ids[name], self.user)

    def _known(self, id: str, field: str) -> str:
        if id not in self.ids:
            known = ", ".join(sorted(self.ids)[:8]) or "none"
            told = f"{field}: {id!r} is not planted before this step; known here: {known}"
            raise self._refusal(told, "underivable" if field in _ID_FIELDS else "malformed")
        return self.ids[id]

    def _refusal(self, told: str, rule: str = "malformed") -> SuiteError:
        return SuiteError.at(self.where, told, rule, self.case.id)

    def _probe(self, asked: form.Asked, query: str, suffix: str) -> Probe:
        case, given = self.case, asked.model_fields_set
        return Probe(
            case=case.id + suffix,
            query=query,
            expectations=tuple(self._expectations(asked)),
            k=asked.k if "k" in given else case.k,
            user=asked.user or case.user or self.user,
            domains=tuple(asked.domains if "domains" in given else case.domains),
            session=asked.session,
            all_sessions="session" in given and asked.session is None,
            leg=asked.leg,
            abstain=asked.abstain,
            critical=case.critical,
            cluster=case.cluster,
            tags=tuple(dict.fromkeys(case.tags)),
            source=case.source,
            hash=digest([self.raw, self.user, self.context, suffix]),
            background=self.background,
            story=tuple(self.story),
            where=self.where,
        )

    def _expectations(self, asked: form.Asked) -> Iterator[Expectation]:
        ids = {name: tuple(self._known(id, name) for id in getattr(asked, name) or ()) for name in _ID_FIELDS}
        if asked.expect_any:
            yield Expectation("any", tuple(asked.expect_any))
        if asked.expect_all or asked.expect_ids:
            yield Expectation("all", tuple(asked.expect_all), ids["expect_ids"])
        if asked.forbid_any or asked.forbid_ids:
            yield Expectation("unwanted", tuple(asked.forbid_any), ids["forbid_ids"])
        if asked.forbid_top1:
            yield Expectation("unwanted_first", tuple(asked.forbid_top1))
        if asked.only_ids is not None:
            yield Expectation("only", ids=ids["only_ids"])
        if asked.at_most is not None:
            yield Expectation("at_most", n=asked.at_most)
        for id, values in asked.expect_metadata.items():
            mine = (self._known(id, "expect_metadata"),)
            yield Expectation("metadata", ids=mine, values=tuple(values.items()))
        if asked.stable:
            yield Expectation("stable")


_ID_FIELDS = ("expect_ids", "forbid_ids", "only_ids")


def _memory(write: form.Write, id: str, user: str) -> Memory:
    owner = write.user or user
    return Memory(id, write.text, write.role, write.at, owner, write.domain, write.session, write.metadata)


def _describe(world: World | None, background: Sequence[Memory]) -> str:
    if not world:
        return ""
    which = "memories" if len(background) == len(world.memories) else "near-misses"
    return f"{len(background)} {which} of world {world.name}"


def _digest_memories(memories: Sequence[Memory]) -> str:
    return digest([[getattr(memory, name) for name in Memory.__slots__] for memory in memories])
