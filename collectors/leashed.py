"""Starts a command on a leash: it ends when told to, or with this process, and all that it started too."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from collectors import leash

KILLED_S = 10.0
"""How long the kernel may take to end what was killed."""


class Leashed:
    """`process` is the leash, whose ending is that of the command. `folder` is removed at the end; files in
    `held` stay open, and so locked, as long as something of it lives."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        held: Sequence[IO[Any]] = (),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
    ) -> None:
        reading, self._lifeline = os.pipe()
        self._ending = threading.Lock()
        self._ended = False
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", leash.__file__, str(reading), str(folder or "-"), *command],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                start_new_session=True,  # Ctrl-C is for this process
                pass_fds=[reading, *(file.fileno() for file in held)],
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(reading)

    def end(self, grace_s: float = 0.0) -> None:
        """Let it leave within that time, else kill it. Safe to call twice, and beside a thread that reads."""
        with self._ending:
            if not self._ended:
                self._ended = True
                self._wait(grace_s)

    def _wait(self, grace_s: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(grace_s)
        with suppress(BrokenPipeError):
            os.write(self._lifeline, b"!")
        os.close(self._lifeline)
        try:
            self.process.wait(KILLED_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
