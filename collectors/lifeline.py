"""A child that ends with its parent, however the parent ends.

`python -m collectors.lifeline FD MODULE ARGS...` runs a module as `python -m MODULE ARGS...` would. FD is the
read end of a pipe whose write end the parent alone holds: at its end the process is asked to stop, and
killed when it has not in time. The module itself need not know.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

STOP_S = 12.0
"""How long a process may take to stop once asked."""


def watch(fd: int) -> None:
    """End this process soon after the pipe has ended."""
    threading.Thread(target=_wait_and_end, args=(fd,), name="memtrend-lifeline", daemon=True).start()


def _wait_and_end(fd: int) -> None:
    while os.read(fd, 1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_S)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    fd, module = int(sys.argv[1]), sys.argv[2]
    watch(fd)
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
