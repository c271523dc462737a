"""What holds for every test: the same on each machine, whatever is set in the environment there."""

import os

from hypothesis import settings

settings.register_profile("memtrend", deadline=None, derandomize=True)
settings.load_profile("memtrend")

for name in [name for name in os.environ if name.startswith("MEMTREND_")]:
    del os.environ[name]
