"""Reader of index canaries: a TOML file of counts and of identifiers asked of each leg alone.

With `[standing]` an index of the team's is read and nothing else; with `plant` a fresh one is filled.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError, model_validator

from collectors.suite import (
    DEFAULT_USER,
    Expectation,
    Plant,
    Probe,
    Scenario,
    Scope,
    SuiteConfig,
    SuiteError,
    digest,
)
from collectors.suites.golden import World, read_world
from collectors.suites.golden_format import MAX_K, Line, Pattern, Text

DEFAULT_TOLERANCE = 0.02
AGREEMENT = "legs-agree"

Legs = Annotated[list[Text], Field(min_length=1)]


class Standing(Line):
    namespace: Text
    user: Text = DEFAULT_USER


class Identifier(Line):
    """A question that only the right memory answers, by an exact code; asked of each of `legs` alone."""

    id: Text
    query: Text
    expect_any: Annotated[list[Pattern], Field(min_length=1)]
    legs: Legs | None = None
    k: Annotated[int, Field(gt=0, le=MAX_K)] = 5


class Health(Line):
    legs: Legs
    standing: Standing | None = None
    plant: Text | None = None
    tolerance: Annotated[float, Field(ge=0, lt=1)] = DEFAULT_TOLERANCE
    source: Text = "an index that lost memories while fusion hides it"
    probes: list[Identifier] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fits_together(self) -> Health:
        if (self.standing is None) == (self.plant is None):
            raise ValueError("should have either [standing], an index to read, or plant, a file to fill one")
        for probe in self.probes:
            if unknown := set(probe.legs or ()) - set(self.legs):
                raise ValueError(f"probe {probe.id!r}: {', '.join(sorted(unknown))} should be one of legs")
        return self


def read(config: SuiteConfig) -> tuple[Scenario, ...]:
    """One scenario: the counts of the legs, then the identifiers."""
    health = _parsed(config)
    world = _world(config.path.parent / health.plant) if health.plant else None
    index = _Index(config.path, health, world)
    probes = tuple(probe for probe in _probes(index) if _selected(probe, config))
    planted = (Plant(world.memories),) if world else ()
    return (Scenario("index", (*planted, *probes), index.standing),)


def _world(path: Path) -> World:
    return read_world(path, path.stem)


def _selected(probe: Probe, config: SuiteConfig) -> bool:
    return set(config.only) <= set(probe.tags) and not set(config.without) & set(probe.tags)


def _parsed(config: SuiteConfig) -> Health:
    try:
        return Health.model_validate(tomllib.loads(config.path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SuiteError(f"suite {config.name}: {config.path} cannot be read as TOML: {error}") from error
    except ValidationError as error:
        lines = [f"{config.path}: {_explained(item)}" for item in error.errors(include_url=False)]
        raise SuiteError("\n".join([f"suite {config.name}: {len(lines)} problem(s)", *lines])) from error


def _explained(item: Any) -> str:
    where = ".".join(map(str, item["loc"])) or "file"
    if item["type"] == "extra_forbidden":
        return f"{where}: is not a field here; docs/suites.md lists them"
    return f"{where}: {item['msg'].removeprefix('Value error, ')}"


class _Index(NamedTuple):
    """What the file describes: an index to read, or one to fill with a world."""

    path: Path
    health: Health
    world: World | None

    @property
    def standing(self) -> Scope | None:
        place = self.health.standing
        return Scope(place.namespace, place.user) if place else None

    @property
    def user(self) -> str:
        return self.standing.user if self.standing else self.world.user if self.world else DEFAULT_USER

    @property
    def content(self) -> str:
        """What makes the same question of another index another question."""
        return self.standing.namespace if self.standing else self.world.digest if self.world else ""

    def probe(self, case: str, query: str, expectation: Expectation, leg: str | None, k: int = 5) -> Probe:
        """Losing memories is worth waking someone; one identifier that is not found may be a ranking."""
        counts = expectation.kind == "count"
        asked = [case, query, [getattr(expectation, name) for name in Expectation.__slots__], leg, k]
        return Probe(
            case,
            query,
            (expectation,),
            k,
            self.user,
            all_sessions=True,
            leg=leg,
            critical=counts,
            tags=("count" if counts else "identifier", *([leg] if leg else [])),
            source=self.health.source,
            where=str(self.path),
            hash=digest([asked, self.user, self.content]),
            background=f"the standing index {self.content}" if self.standing else "",
        )


def _probes(index: _Index) -> Iterator[Probe]:
    health = index.health
    counted = Expectation("count", tolerance=health.tolerance)
    for leg in health.legs:
        yield index.probe(f"count/{leg}", "How many memories does it hold?", counted, leg)
    if len(health.legs) > 1:
        yield index.probe(AGREEMENT, "Do the legs hold the same memories?", counted, None)
    for one in health.probes:
        wanted = Expectation("any", tuple(one.expect_any))
        for leg in one.legs or health.legs:
            yield index.probe(f"{one.id}/{leg}", one.query, wanted, leg, one.k)
