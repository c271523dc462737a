"""`memtrend up`: everything begins together and ends together, whatever ends it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import psutil
import pytest

from collectors.supervise import Address, PortError, check_port
from store import queries, writes
from store.database import open_database
from tests import waiting

WAIT_S = 60.0
STOP_S = 12.0
MODULES = ["dashboard.server", "collectors.collector"]

CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.floor]
type = "everything"
"""

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""


def until(condition, what):
    return waiting.until(condition, what, WAIT_S)


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def is_any(process, modules):
    return bool({*process.cmdline()} & {*modules})


class Up:
    """`memtrend up` in a folder, with what it started; all of it is killed at the end."""

    def __init__(self, home, port, config=None):
        self.home, self.url = home, f"http://127.0.0.1:{port}"
        self.out, self.err = home / "out.txt", home / "err.txt"
        named = ["--config", config] if config else []
        command = [sys.executable, "-P", "-m", "collectors.cli", *named, "up", "--port", str(port)]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = psutil.Popen(command, cwd=home, stdout=out, stderr=err, start_new_session=True)
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [self.process, *self.started]:
            if process.is_running():
                process.kill()
        self.process.wait()

    def children(self):
        """Dashboard and collector, once both are there; a child just forked still bears its parent's name."""

        def both():
            assert self.process.poll() is None, self.err.read_text()
            found = self.process.children()
            return len(found) == 2 and all(is_any(child, MODULES) for child in found) and found

        self.started = until(both, "two children")
        return self.started

    def child(self, module):
        return next(child for child in self.children() if is_any(child, [module]))

    def serves(self):
        """Waits for the line with the address."""
        until(lambda: self.url in self.err.read_text(), self.err.read_text)

    def log(self):
        """The entries so far; the last line may still be in the making."""
        return [json.loads(line) for line in self.err.read_text().splitlines(keepends=True) if "\n" in line]

    def press_ctrl_c(self):
        """As a terminal does: to every process of the foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def none_left(self, within_s):
        _, alive = psutil.wait_procs(self.started, timeout=within_s)
        return alive == []


@pytest.fixture
def home(tmp_path):
    (tmp_path / "memtrend.toml").write_text(CONFIG)
    return tmp_path


def record(home, name="record.db"):
    return open_database(f"sqlite:///{home / name}")


def get(url):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
        return answer.status


def test_up_serves_and_finishes_first_runs(home, port):
    """The address is told once it answers, each suite gets a whole run and an entry, requests are done, and
    ^C ends all."""
    with Up(home, port) as up:
        up.children()
        up.serves()  # only then is each child surely past its own beginning
        assert up.process.pid not in {os.getpgid(child.pid) for child in up.started}, "^C is ours alone"
        assert get(f"{up.url}/healthz") == 200
        until(lambda: sum(entry.get("status") == "whole" for entry in up.log()) == 4, up.err.read_text)
        db = record(home)
        writes.add_request(db, "run", {"suite": "smoke", "backend": "floor"}, "dashboard")
        until(lambda: queries.requests(db, ["done"]), "the request is done")
        up.press_ctrl_c()
        assert up.process.wait(STOP_S) == 130
        assert up.none_left(0)
        assert up.out.read_text() == ""
        assert {entry["level"] for entry in up.log()} == {"info"}
    rows = queries.runs(db, statuses=["whole"])
    ran = [(row.trigger, row.suite) for row in reversed(rows)]
    assert ran == [
        ("first", "golden"),
        ("first", "smoke"),
        ("first", "holdout"),
        ("first", "contract"),
        ("request:dashboard", "smoke"),
    ]


def test_up_needs_no_configuration(tmp_path, port):
    """In an empty folder the defaults are served, and the first runs begin."""
    with Up(tmp_path, port) as up:
        up.children()
        up.serves()
        until(lambda: queries.runs(record(tmp_path, "memtrend.db")), "a first run")
        up.process.terminate()
        assert up.process.wait(STOP_S) == 0
        assert up.none_left(0)


def test_term_before_anything_is_ready(home, port):
    """A stop that comes while the children still start ends them, too."""
    with Up(home, port) as up:
        up.children()
        up.process.terminate()
        assert up.process.wait(STOP_S) == 0
        assert up.none_left(0)


def test_what_runs_is_interrupted_by_the_end(home, port):
    """Ending everything while a run is under way keeps what it had; all followed the configuration named."""
    (home / "memtrend.toml").unlink()
    (home / "other.toml").write_text(CONFIG.replace('"everything"', '"sluggish:Slow"'))
    (home / "sluggish.py").write_text(
        "import time\n"
        "class Slow:\n"
        "    def __init__(self):\n        self.texts = []\n"
        "    def write(self, text):\n        self.texts.append(text)\n"
        "    def search(self, query, k):\n        time.sleep(0.05)\n        return self.texts[-k:]\n"
    )
    with Up(home, port, config="other.toml") as up:
        up.children()
        db = until(lambda: (home / "record.db").exists() and record(home), "the record")
        row = until(lambda: queries.progress(db), "a run is under way")[0]
        up.press_ctrl_c()
        assert up.process.wait(STOP_S) == 130
        assert up.none_left(0)
    assert queries.run(db, row.id).status == "interrupted"
    assert not (home / "memtrend.db").exists()


def test_kill_leaves_no_one_behind(home, port):
    """After `kill -9` of the parent both children notice, stop by themselves, and free the port."""
    with Up(home, port) as up:
        up.children()
        up.serves()
        up.process.kill()
        assert up.none_left(STOP_S)
    check_port(Address("127.0.0.1", port))
    assert not any(lease.held for lease in queries.leases(record(home)))


@pytest.mark.parametrize("module", MODULES)
def test_a_child_that_dies_takes_the_rest_along(home, port, module):
    """Half a memtrend is none: the death of either child ends the other, with a message and exit code 1."""
    with Up(home, port) as up:
        up.child(module).kill()
        assert up.process.wait(STOP_S) == 1
        assert up.none_left(0)
        assert "ended by signal 9, and the rest with it" in up.err.read_text()


def test_a_taken_port_is_told_first(home):
    """Nothing is started when the port is taken; the message says which, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with Up(home, port) as up:
            assert up.process.wait(WAIT_S) == 1
            message = up.err.read_text()
    assert f"port {port} on 127.0.0.1 is taken" in message
    assert f"choose another port: --port {port + 1}" in message
    assert "Traceback" not in message
    assert not (home / "record.db").exists()


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("192.0.2.1", r"cannot listen on 192\.0\.2\.1.*--host"),
        ("300.1.1.1", r"'300\.1\.1\.1' is no address of this machine; choose another --host"),
    ],
)
def test_an_address_of_another_machine_is_refused(host, said):
    """A host that is not ours is named, with what to choose instead: asked wrongly, so exit code 2."""
    with pytest.raises(PortError, match=said) as refused:
        check_port(Address(host, 8501))
    assert refused.value.code == 2


def test_a_deaf_child_is_killed(tmp_path):
    """A process on the lifeline that ignores its TERM is killed all the same."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    read_end, write_end = os.pipe()
    program = (
        "import sys; sys.argv = ['-', sys.argv[1], 'stubborn']\n"
        "from collectors import lifeline; lifeline.STOP_S = 0.2; lifeline.main()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(read_end)],
        cwd=tmp_path,
        pass_fds=[read_end],
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout.readline() == b"deaf\n"
        os.close(write_end)
        assert child.wait(WAIT_S) == -signal.SIGKILL
    finally:
        child.kill()
        child.stdout.close()
        os.close(read_end)
