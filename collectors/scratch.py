"""What a worker leaves lying about: a folder for its files, and what it printed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from collectors.backend import NAMESPACE_PREFIX

PREFIX = f"{NAMESPACE_PREFIX}worker-"
LOCK = ".memtrend-lock"
KEPT = 16 * 1024
"""Characters kept of the beginning of what a worker prints, and as many of its end."""


@contextmanager
def scratch() -> Iterator[tuple[Path, IO[str]]]:
    """A folder, and its lock: whoever holds that keeps the folder. The worker's leash removes it too, should
    this process be killed; what both had to leave behind goes when the next one is made. A process id would
    say nothing to another container."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _sweep(left)
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (path / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield path, lock
        finally:
            shutil.rmtree(path, ignore_errors=True)


def _sweep(left: Path) -> None:
    """One without a lock is just being made, or not ours to judge."""
    with suppress(OSError), (left / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(left, ignore_errors=True)


class Printed:
    """What a process prints: its beginning and its end, as it comes."""

    def __init__(self) -> None:
        self._head, self._tail, self._size = "", deque[str](), 0
        self._reader: threading.Thread | None = None

    def read(self, pipe: IO[bytes]) -> None:
        self._reader = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._reader.start()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while part := os.read(pipe.fileno(), 65536):
                self._add(part.decode("utf-8", "replace"))

    def _add(self, text: str) -> None:
        room = KEPT - len(self._head)
        self._head += text[:room]
        if text[room:]:
            self._tail.append(text[room:])
            self._size += len(text[room:])
        while self._tail and self._size - len(self._tail[0]) >= KEPT:
            self._size -= len(self._tail.popleft())

    def finish(self) -> None:
        if self._reader:
            self._reader.join(1.0)

    def text(self) -> str:
        """Cut between words: half a secret is not known for one."""
        tail = "".join(list(self._tail))
        if len(tail) <= KEPT:
            return self._head + tail
        begun, left = re.sub(r"\S+$", "", self._head), re.sub(r"^\S+", "", tail[-KEPT:])
        return f"{begun}\n[...]\n{left}"

    def last_line(self) -> str:
        return next((line.strip() for line in reversed(self.text().splitlines()) if line.strip()), "")
