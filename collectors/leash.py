"""Keeps a command: all that it starts ends with it, and all of that ends with whoever started it.

`python -I leash.py LIFELINE FOLDER COMMAND...` runs the command with its own stdin, stdout and stderr.
LIFELINE is the read end of a pipe whose write end the starter alone holds. At its end, be it that the starter
was killed, the command has `GRACE_S` to leave by itself; a byte on it means at once. Then whatever is left
of it is killed, in whichever session it hides, FOLDER ("-" for none) is removed, and the ending of the
command is repeated. Stdlib only, and a process of its own: no thread can act while C code holds Python.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GRACE_S = 4.0
CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below become our children, so that none can hide."""


def main() -> None:
    lifeline, folder, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with suppress(OSError, AttributeError):  # elsewhere than on Linux the group has to do
        ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    for asked in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asked, signal.SIG_IGN)  # the end is the starter's to say
    child = subprocess.Popen(command, start_new_session=True, preexec_fn=_ask_again)
    for pipe in (0, 1):  # the command's alone: who reads them must see its end
        os.close(pipe)
    threading.Thread(target=_watch, args=(lifeline, child), daemon=True).start()
    code = child.wait()
    _kill_the_rest(child.pid)
    if folder != "-":
        shutil.rmtree(folder, ignore_errors=True)
    _end_as(code)


def _ask_again() -> None:
    for asked in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asked, signal.SIG_DFL)


def _watch(lifeline: int, child: subprocess.Popen[bytes]) -> None:
    if not os.read(lifeline, 1):
        deadline = time.monotonic() + GRACE_S
        while child.returncode is None and time.monotonic() < deadline:
            time.sleep(0.02)
    if child.returncode is None:
        os.kill(child.pid, signal.SIGKILL)


def _kill_the_rest(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    while left := list(_below(os.getpid())):
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        time.sleep(0.005)


def _below(pid: int) -> Iterator[int]:
    """The processes started by this one, and by those; none where there is no /proc."""
    parents = dict(_parents())
    for child, parent in parents.items():
        if parent == pid:
            yield child
            yield from _below(child)


def _parents() -> Iterator[tuple[int, int]]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            yield int(stat.parent.name), int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])


def _end_as(code: int) -> None:
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has dumped its own
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
