"""What holds for every test: the same on each machine, whatever is set in the environment there."""

import importlib
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.databases import databases
from tests.demo_record import demo_folder

__all__ = ["databases", "demo_folder"]
"""Fixtures: one server for all tests of a process, one demo for all of a run."""

settings.register_profile("memtrend", deadline=None, derandomize=True)
settings.load_profile("memtrend")

for name in [name for name in os.environ if name.startswith("MEMTREND_")]:
    del os.environ[name]


@pytest.fixture(autouse=True)
def _imports_restored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The folder of a configuration and the working directory join the path: what lies there, and what was
    imported from there, would answer for a module of that name in every later test of the process."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    base = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(base):
            del sys.modules[name]
    importlib.invalidate_caches()
