"""What holds for every test: the same on each machine, whatever is set in the environment there."""

import os

from hypothesis import settings

from tests.databases import databases

__all__ = ["databases"]
"""A fixture: one server for all tests of a process."""

settings.register_profile("memtrend", deadline=None, derandomize=True)
settings.load_profile("memtrend")

for name in [name for name in os.environ if name.startswith("MEMTREND_")]:
    del os.environ[name]
