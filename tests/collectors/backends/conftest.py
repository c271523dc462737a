"""Every backend in every way it can be opened, with what is known of each."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from collectors.backend import BACKENDS, Backend, BackendConfig, open_backend

CHANGES = frozenset({"amend", "forget", "forget_user", "ids", "metadata", "deterministic"})
EMBEDDED = ("keyword", "dense", "hybrid", "everything")
DECLARED = {
    "keyword": CHANGES | {"count", "legs"},
    "dense": CHANGES | {"count", "legs"},
    "hybrid": CHANGES | {"count", "legs"},
    "everything": CHANGES | {"count"},
    "nothing": CHANGES,
    "mem0": CHANGES | {"count"},
    "faulty": CHANGES - {"deterministic"} | {"count", "legs"},
}
OPTIONS = {"faulty": {"of": {"type": "hybrid"}, "fault": "flaky", "share": 0.0}}
"""A wrapper that never does wrong, so that it owes all that what it wraps owes."""
INDEXES = {
    "keyword": ("keyword",),
    "dense": ("vector",),
    "hybrid": ("keyword", "vector"),
    "everything": ("memories",),
    "mem0": ("memories",),
    "faulty": ("keyword", "vector"),
}
NEEDS = {"mem0": "mem0"}
"""Packages that are not there unless asked for."""


@dataclass
class Opened:
    """A backend that can be closed and opened again."""

    config: BackendConfig
    backend: Backend = field(init=False)

    def __post_init__(self) -> None:
        self.backend = open_backend(self.config)

    def reopen(self) -> Backend:
        self.backend.close()
        self.backend = open_backend(self.config)
        return self.backend

    @property
    def type(self) -> str:
        return self.config.type

    @property
    def declared(self) -> frozenset[str]:
        """What it must declare, no more and no less."""
        return DECLARED[self.type] | ({"durable"} if self.config.directory else set())

    @property
    def indexes(self) -> tuple[str, ...]:
        return INDEXES[self.type]

    @property
    def keeps(self) -> bool:
        return self.type != "nothing"


def _ways() -> Iterator[Any]:
    for type in BACKENDS:
        missing = type in NEEDS and importlib.util.find_spec(NEEDS[type]) is None
        marks = [pytest.mark.skip(reason=f"make install EXTRAS={NEEDS[type]}")] if missing else []
        for on_disk in (False, True) if type != "nothing" else (False,):
            yield pytest.param((type, on_disk), id=f"{type}-{'disk' if on_disk else 'memory'}", marks=marks)


@pytest.fixture(params=_ways())
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    type, on_disk = request.param
    directory = tmp_path / "store" if on_disk else None
    opened = Opened(BackendConfig(type, type, OPTIONS.get(type, {}), directory=directory))
    yield opened
    opened.backend.close()


@pytest.fixture(params=EMBEDDED)
def embedded(request: pytest.FixtureRequest) -> Iterator[Backend]:
    backend = open_backend(BackendConfig(request.param, request.param))
    yield backend
    backend.close()
