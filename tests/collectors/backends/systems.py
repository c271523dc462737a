"""Real systems as they are opened in tests: each a release in an environment of its own.

A row is a name, how it is configured, and what is known of it. Rows that are not `quick` are tested by
`make test-backends` alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collectors.backend import BackendConfig, Isolation

KEEPS = frozenset({"forget", "count", "ids", "metadata"})
CHANGES = KEEPS | {"amend", "forget_user", "deterministic"}


@dataclass(frozen=True)
class System:
    """`declared`: what it must declare, but for `durable`, which it must on disk alone. `deviates`: tests of
    the contract that the *backend* fails, and why; they must go on failing until it is mended."""

    name: str
    type: str
    isolation: Isolation
    declared: frozenset[str]
    indexes: tuple[str, ...] = ("memories",)
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    in_memory: bool = True
    on_disk: bool = True
    deviates: Mapping[str, str] = field(default_factory=dict)

    def config(self, directory: Path | None = None) -> BackendConfig:
        return BackendConfig(self.name, self.type, self.options, "wordllama", directory, self.isolation)


MEM0_RELEASES = ("0.1.118", "1.0.0", "1.0.3", "1.0.6", "1.0.11", "2.0.0", "2.0.20", "2.2.1")
MEM0_QUICK = ("1.0.3", "2.2.1")


def _mem0() -> Iterator[System]:
    for release in MEM0_RELEASES:
        isolation = Isolation(f"mem0ai=={release}")
        yield System(f"mem0-{release}", "mem0", isolation, CHANGES, quick=release in MEM0_QUICK)


SYSTEMS = (*_mem0(),)
