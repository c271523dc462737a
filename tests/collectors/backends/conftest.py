"""Every backend in every way it can be opened, with what is known of each."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from collectors.backend import Backend, BackendConfig, BackendError, open_backend
from collectors.suite import Scope
from tests.collectors.backends.memory_server import opened_as, server
from tests.collectors.backends.systems import SYSTEMS, System

__all__ = ["opened_as", "server"]
"""Fixtures that stand beside what they open."""

CHANGES = frozenset({"amend", "forget", "forget_user", "ids", "metadata", "deterministic"})
EMBEDDED = ("keyword", "dense", "hybrid", "everything")
DECLARED = {
    "keyword": CHANGES | {"count", "legs"},
    "dense": CHANGES | {"count", "legs"},
    "hybrid": CHANGES | {"count", "legs"},
    "everything": CHANGES | {"count"},
    "nothing": CHANGES,
    "mem0": CHANGES - {"deterministic"} | {"count"},
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
    """A backend that can be closed and opened again. `declared` is what it must declare, no more and no less;
    `indexes` are those that it counts."""

    config: BackendConfig
    declared: frozenset[str]
    indexes: tuple[str, ...]
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
    def keeps(self) -> bool:
        return self.type != "nothing"


ON_DISK = {"test_declares_what_it_can_do", "test_survives_being_closed"}
"""Of a real system these alone are asked on disk: its worker takes seconds to open."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of the contract is made of every backend in every way it can be opened."""
    if "opened" in metafunc.fixturenames and metafunc.module.__name__.endswith("test_contract"):
        ways = [*_embedded(), *_systems(metafunc.function.__name__)]
        metafunc.parametrize("opened", ways, indirect=True)


def _embedded() -> Iterator[Any]:
    for type in DECLARED:
        missing = type in NEEDS and importlib.util.find_spec(NEEDS[type]) is None
        marks = [pytest.mark.skip(reason=f"make install EXTRAS={NEEDS[type]}")] if missing else []
        for on_disk in (False, True) if type != "nothing" else (False,):
            yield pytest.param((type, on_disk), id=f"{type}-{'disk' if on_disk else 'memory'}", marks=marks)


def _systems(test: str) -> Iterator[Any]:
    for system in SYSTEMS:
        marks = [] if system.quick else [pytest.mark.backends]
        if fault := system.deviates.get(test):
            marks.append(pytest.mark.xfail(reason=fault.why, raises=fault.raises, strict=True))
        if system.in_memory:
            yield pytest.param((system, False), id=f"{system.name}-memory", marks=marks)
        if system.on_disk and (test in ON_DISK or not system.in_memory):
            yield pytest.param((system, True), id=f"{system.name}-disk", marks=marks)


@pytest.fixture(scope="session")
def workers() -> Iterator[dict[str, Opened]]:
    """Real systems that stay open from test to test."""
    opened: dict[str, Opened] = {}
    yield opened
    for one in opened.values():
        one.backend.close()


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path, workers: dict[str, Opened]) -> Iterator[Opened]:
    what, on_disk = request.param
    directory = tmp_path / "store" if on_disk else None
    durable = {"durable"} if on_disk else frozenset()
    if isinstance(what, System):
        config = what.config(directory)
        known = (what.declared | durable, what.indexes)
    else:
        config = BackendConfig(what, what, OPTIONS.get(what, {}), directory=directory)
        known = (DECLARED[what] | durable, INDEXES.get(what, ()))
    stays = isinstance(what, System) and not on_disk and request.function.__name__ not in CLOSING
    with lent(workers if stays else None, config, *known) as one:
        yield one


@contextmanager
def lent(
    workers: dict[str, Opened] | None,
    config: BackendConfig,
    declared: frozenset[str],
    indexes: tuple[str, ...],
) -> Iterator[Opened]:
    """One of the workers that stay open, its boxes emptied; without them, one that is closed afterwards."""
    if workers is None:
        one = Opened(config, declared, indexes)
        yield one
        with suppress(BackendError):
            one.backend.close()
        return
    if config.name not in workers:
        workers[config.name] = Opened(config, declared, indexes)
    one = workers[config.name]
    for box in ("memtrend-test-1", "memtrend-test-2"):
        one.backend.reset(Scope(box))
    yield one


CLOSING = {"test_closing_twice_is_fine", "test_survives_being_closed"}
"""Tests that close what they are given."""


@pytest.fixture(params=EMBEDDED)
def embedded(request: pytest.FixtureRequest) -> Iterator[Backend]:
    backend = open_backend(BackendConfig(request.param, request.param))
    yield backend
    backend.close()
