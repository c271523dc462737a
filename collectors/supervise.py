"""`memtrend up`: dashboard and collector as children of one process, which begin and end together."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import IO, NamedTuple

from collectors.lifeline import STOP_S
from collectors.process import Stop, stop_on_signals
from store import logs
from store.settings import Settings

LOG = logs.get("up")
POLL_S = 0.1
PYTHON = (sys.executable, "-P")
"""-P: a folder `store` or `collectors` in the working directory must not take the place of ours."""


class PortError(Exception):
    """The dashboard cannot listen there. The message says why, and what to do; `code` is the exit code."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class Address(NamedTuple):
    host: str
    port: int

    @property
    def reachable(self) -> str:
        """Where this machine itself reaches it."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    @property
    def url(self) -> str:
        host = f"[{self.reachable}]" if ":" in self.reachable else self.reachable
        return f"http://{host}:{self.port}"


def up(
    settings: Settings, *, host: str | None = None, port: int | None = None, first_runs: bool = True
) -> int:
    """Serve the dashboard and collect, beginning with `first_runs` of every (suite, backend) that has no
    whole one, until a signal. Returns the exit code: 0 after TERM, 130 after INT, 1 when a child ended by
    itself. `host` and `port` beat the settings. Raises `PortError`."""
    address = Address(host or settings.dashboard.host, port or settings.dashboard.port)
    check_port(address)
    logs.begin(settings.log)
    with stop_on_signals() as stop, Children() as children:
        where = ("--host", address.host, "--port", str(address.port))
        # Streamlit announces itself on stdout; we do so once it answers. The logs are on stderr.
        children.start("dashboard", "dashboard.server", *where, stdout=subprocess.DEVNULL)
        collector = ("collectors.collector",) if first_runs else ("collectors.cli", "collect")
        children.start("collector", *collector)
        return _watch(children, address, stop)


def check_port(address: Address) -> None:
    """Raises `PortError` when no one could listen there."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.getaddrinfo(*address)  # the server's own error does not tell that it is the name
        socket.create_server(address, family=family).close()
    except OSError as error:
        raise _port_error(address, error) from error


def _port_error(address: Address, error: OSError) -> PortError:
    if error.errno == errno.EADDRINUSE:
        return PortError(
            f"port {address.port} on {address.host} is taken by another program; stop that one, or choose "
            f"another port: --port {address.port + 1}",
            code=1,
        )
    if isinstance(error, socket.gaierror):
        return PortError(f"{address.host!r} is no address of this machine; choose another --host")
    where = f"{address.host}, port {address.port}"
    return PortError(
        f"cannot listen on {where} ({os.strerror(error.errno or 0)}); choose with --host and --port"
    )


def _watch(children: Children, address: Address, stop: Stop) -> int:
    told = False
    while not stop.asked.wait(POLL_S):
        if ended := children.ended():
            LOG.error(f"{ended}, and the rest with it")
            return 1
        if not told and answers(address):
            told = True
            _announce(address)
    return stop.exit_code


def _announce(address: Address) -> None:
    """To whoever watches the terminal, and in the log."""
    LOG.info("the dashboard answers", url=address.url)
    if sys.__stdout__ and sys.__stdout__.isatty():
        sys.__stdout__.write(f"The dashboard is at {address.url}   (^C stops everything)\n")
        sys.__stdout__.flush()


def answers(address: Address) -> bool:
    """Whether a web server answers there."""
    connection = HTTPConnection(address.reachable, address.port, timeout=1)
    try:
        connection.request("GET", "/healthz")
        connection.getresponse()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return True


class Children:
    """Processes that hold the read end of a pipe of ours, and so know when we are gone, even by `kill -9`.
    They are out of reach of the terminal's ^C: we alone tell them to stop. `environment` and `stderr` are
    ours by default."""

    def __init__(self, environment: Mapping[str, str] | None = None, stderr: IO[str] | None = None) -> None:
        self._environment, self._stderr = environment, stderr
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._read_end, self._write_end = os.pipe()

    def start(self, name: str, module: str, *arguments: str, stdout: int | None = None) -> None:
        """Run a module of ours as a child."""
        self._processes[name] = subprocess.Popen(
            [*PYTHON, "-m", "collectors.lifeline", str(self._read_end), module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=self._stderr,
            env=self._environment,
            pass_fds=[self._read_end],
            start_new_session=True,
        )

    def ended(self) -> str | None:
        """What happened to a child that is no more."""
        for name, process in self._processes.items():
            if (code := process.poll()) is not None:
                how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
                return f"the {name} ended {how}"
        return None

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """TERM to all, and KILL to those that have not ended in time."""
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_S
        for process in self._processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        os.close(self._read_end)
        os.close(self._write_end)
