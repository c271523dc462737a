"""Backends in a small environment of their own, and the processes that answer for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from collectors.backend import Backend, BackendConfig, Isolation, open_backend
from collectors.backends.isolated import Isolated
from collectors.suite import Memory, Scope
from tests.collectors.backends.odd_releases import ODD

ROOT = Path(__file__).parents[3]
BOX = Scope("memtrend-test-1", "anna")
SMALL = Isolation("six==1.17.0")
FERRY = Memory("m-1", "The ferry leaves at seven.", metadata={"nested": {"deep": [1, None, "ł\ud800"]}})


@pytest.fixture
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Backend]]:
    """Opens a backend in a small environment, its scratch in the folder of the test; at the end nothing of it
    is left, neither process nor folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.chdir(ROOT)
    opened: list[Backend] = []

    def open(type: str, *, isolation: Isolation = SMALL, **options: Any) -> Backend:
        kind = type if type[0].islower() else ODD + type
        opened.append(open_backend(BackendConfig("ours", kind, options, isolation=isolation)))
        return opened[-1]

    yield open
    for backend in opened:
        backend.abandon()
    assert list(scratch.glob("memtrend-worker-*")) == []


def planted(backend: Backend, *memories: Memory) -> Backend:
    backend.reset(BOX)
    backend.remember(BOX, memories or [FERRY])
    backend.settle(BOX)
    return backend


def leash_of(backend: Backend) -> psutil.Process:
    assert isinstance(backend, Isolated)
    assert backend._leashed
    return psutil.Process(backend._leashed.process.pid)


def worker_of(backend: Backend) -> psutil.Process:
    """The command at the end of the leash."""
    [worker] = children_of(leash_of(backend), 1)
    return worker


def gone(process: psutil.Process, within_s: float = 20.0) -> bool:
    return process in psutil.wait_procs([process], timeout=within_s)[0]


def children_of(process: psutil.Process, wanted: int) -> list[psutil.Process]:
    while len(found := process.children()) < wanted:
        time.sleep(0.02)
    return found
