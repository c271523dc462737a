"""A PostgreSQL server with pgvector, from a package of its binaries, for as long as somebody holds it.

What starts and stops it is a process of its own, which ends, and takes server and folder with it, when its
input does: so too when the tests are killed.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

PACKAGE = "pgserver==0.1.4"
PASSWORD = "not/so:secret"
"""With what an URL has to quote."""
QUICK = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c autovacuum=off"
"""What is stored need not outlive the machine."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
UNPRIVILEGED = "nobody"
"""Who runs the server where the tests run as root, which it refuses to."""


class Server(NamedTuple):
    """`url` is that of an empty database, on a socket in a temporary folder; `keeper` is the process that
    holds it."""

    url: str
    psql: str
    keeper: int

    def run(self, sql: str) -> str:
        """What a statement answers, a line for each row."""
        command = [self.psql, "--no-psqlrc", "--tuples-only", "--no-align", "--command", sql, self.url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def server() -> Iterator[Server]:
    """Runs one as long as the context lasts."""
    keeper = subprocess.Popen(
        [sys.executable, "-I", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt from the keyboard is the tests' to pass on
    )
    with keeper:
        assert keeper.stdin
        assert keeper.stdout
        told = keeper.stdout.readline()
        assert told, "the server did not start: see above"
        try:
            yield Server(**json.loads(told), keeper=keeper.pid)
        finally:
            keeper.stdin.close()
            keeper.wait(60)


def main() -> None:
    for number in SIGNALS:
        signal.signal(number, _leave)
    with ExitStack() as left:
        folder = Path(tempfile.mkdtemp(prefix="memtrend-pg-"))
        left.callback(shutil.rmtree, folder)
        folder.chmod(0o755)
        run = _Run(folder)
        left.callback(run.stop)
        run.start()
        print(json.dumps({"url": run.url, "psql": str(run.bin / "psql")}), flush=True)  # noqa: T201
        sys.stdin.read()


def _leave(*_: object) -> None:
    """On the way out server and folder go; being asked twice does not end that half-way."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(0)


class _Run:
    def __init__(self, folder: Path) -> None:
        self.bin, self._data = folder / "package" / "pgserver" / "pginstall" / "bin", folder / "data"
        self._secret = folder / "password"
        self._secret.write_text(PASSWORD)
        uv = Path(sys.executable).with_name("uv")
        install = [uv, "pip", "install", "--quiet", "--no-deps", "--target", folder / "package", PACKAGE]
        subprocess.run(install, check=True)
        self._data.mkdir(mode=0o700)
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam(UNPRIVILEGED)
            os.chown(self._data, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        self.url = f"postgresql://postgres:{quote(PASSWORD, safe='')}@/postgres?host={self._data}"

    def start(self) -> None:
        secret = ["--auth", "scram-sha-256", "--pwfile", str(self._secret), "--username", "postgres"]
        self._command("initdb", "--no-sync", "--encoding", "utf8", *secret)
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._data}' {QUICK}"
        self._command("pg_ctl", "--wait", "--log", str(self._data / "log"), "--options", options, "start")

    def stop(self) -> None:
        """Where it was started."""
        if (self._data / "postmaster.pid").exists():
            self._command("pg_ctl", "--wait", "--mode", "fast", "stop")

    def _command(self, name: str, *arguments: str) -> None:
        # Not to the pipe of whoever waits for the server: that would hold it open.
        subprocess.run(
            [self.bin / name, "--pgdata", self._data, *arguments],
            **self._as,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self._data,
            check=True,
        )


if __name__ == "__main__":
    main()
