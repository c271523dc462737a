"""Real systems as they are opened in tests: each a release in an environment of its own.

A row is a name, how it is configured, and what is known of it. Rows that are not `quick` are tested by
`make test-backends` alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from collectors.backend import Isolation

KEEPS = frozenset({"forget", "count", "ids", "metadata"})
CHANGES = KEEPS | {"amend", "forget_user", "deterministic"}


@dataclass(frozen=True)
class System:
    """`declared`: what it must declare without a directory, and with one too beside `durable`. `deviates`:
    tests of the contract that the *backend* fails, and why."""

    name: str
    type: str
    isolation: Isolation
    declared: frozenset[str]
    indexes: tuple[str, ...] = ("memories",)
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    on_disk: bool = True
    deviates: Mapping[str, str] = field(default_factory=dict)


MEM0_RELEASES = ("0.1.118", "1.0.0", "1.0.3", "1.0.6", "1.0.11", "2.0.0", "2.0.20", "2.2.1")
MEM0_QUICK = ("1.0.3", "2.2.1")


def _mem0() -> Iterator[System]:
    for release in MEM0_RELEASES:
        isolation = Isolation(f"mem0ai=={release}")
        yield System(f"mem0-{release}", "mem0", isolation, CHANGES, quick=release in MEM0_QUICK)


SYSTEMS = (*_mem0(),)


def as_parameters(systems: tuple[System, ...] = SYSTEMS) -> list[Any]:
    """For `pytest.mark.parametrize` and fixtures: those that are not quick bear the mark `backends`."""
    marks = {True: [], False: [pytest.mark.backends]}
    return [pytest.param(system, id=system.name, marks=marks[system.quick]) for system in systems]
