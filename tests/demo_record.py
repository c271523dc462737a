"""The demo, built once for all tests of a run, however many processes they are spread over."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = (sys.executable, "-P", "-m", "collectors.cli", "demo")
BUILD_S = 540.0
"""On a machine with five times as much to do; alone it is about a minute."""


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that `memtrend demo --once` has built. It is of all: copy it to write into its record, and
    give the test that may be the first to ask for it more time than others have."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "demo"
    with (shared / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            done = subprocess.run(
                [*DEMO, "--once", "--dir", str(folder)], capture_output=True, text=True, timeout=BUILD_S
            )
            assert done.returncode == 0, done.stderr[-4000:]
            (shared / "demo.told").write_text(done.stdout)
    return folder
