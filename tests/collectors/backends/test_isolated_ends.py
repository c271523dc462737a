"""A backend in an environment of its own ends in any way, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from collectors.backend import Backend, BackendConfig, BackendGone
from collectors.calls import Instance, Line
from collectors.scenario import CallLimits, play
from collectors.scratch import LOCK
from collectors.suite import Expectation, Memory, Plant, Probe, Scenario
from tests.collectors.backends.isolating import (
    BOX,
    FERRY,
    ROOT,
    SMALL,
    children_of,
    gone,
    isolated,
    planted,
    worker_of,
)
from tests.collectors.backends.odd_releases import ODD

__all__ = ["isolated"]
"""A fixture of the tests here."""


class TestDeath:
    def test_of_a_worker_is_told(self, isolated: Callable[..., Backend]) -> None:
        """By what it died of and what it said last; the handle is gone for good."""
        backend = planted(isolated("Crashes"))
        with pytest.raises(BackendGone, match=r"worker of six==1\.17\.0 was ended by SIGSEGV: .+"):
            backend.recall(BOX, "crash", 5)
        with pytest.raises(BackendGone):
            backend.recall(BOX, "ferry", 5)
        assert "about to read a null pointer" in backend.journal()

    def test_costs_the_cases_of_its_scenario(self, isolated: Callable[..., Backend]) -> None:
        """What was not answered yet is an error, never a number; the next scenario has a new worker."""
        instance = Instance(BackendConfig("ours", f"{ODD}Crashes", isolation=SMALL))
        probes = [
            Probe(f"case-{n}", query, (Expectation("any", ids=("m-1",)),))
            for n, query in enumerate(["ferry", "crash", "ferry"])
        ]
        scenario = Scenario("s", (Plant((FERRY,)), *probes))
        try:
            for attempt in range(2):
                played = play(instance, scenario, f"memtrend-test-{attempt}", CallLimits(20.0, 3, 0))
                first, *rest = [answer.observation.error for answer in played.answers]
                assert first is None
                assert all(error and "was ended by SIGSEGV" in error for error in rest)
        finally:
            instance.close()

    def test_a_call_that_hangs_is_left(self, isolated: Callable[..., Backend]) -> None:
        """After a timeout the worker is killed, with the child it waits for."""
        instance = Instance(BackendConfig("ours", f"{ODD}Hangs", isolation=SMALL))
        probe = Probe("case-1", "hang", (Expectation("any", ids=("m-1",)),))
        worker = worker_of(instance.handle())
        played = play(instance, Scenario("s", (Plant((FERRY,)), probe)), BOX.namespace, CallLimits(2.0, 1, 0))
        instance.close()
        assert [answer.observation.error for answer in played.answers] == ["no answer within 2 s"]
        assert not worker.is_running()
        assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["/bin/sleep", "600"]]

    @pytest.mark.parametrize(
        ("type", "query", "started"),
        [("Hangs", "hang", 1), ("Hangs", "ferry", 0), ("HoldsTheInterpreter", "hang", 0)],
    )
    def test_of_the_collector(self, tmp_path: Path, type: str, query: str, started: int) -> None:
        """Killed without warning in the middle of a call, it leaves no worker, no child of it, no folder."""
        program = textwrap.dedent(f"""
            import sys
            from collectors.backend import *
            from collectors.suite import Memory, Scope
            backend = open_backend(BackendConfig("ours", "{ODD}{type}", isolation=Isolation("six==1.17.0")))
            backend.reset(Scope("memtrend-1"))
            print(backend._leashed.process.pid, flush=True)
            backend.recall(Scope("memtrend-1"), sys.argv[1], 5)
        """)
        collector = subprocess.Popen(
            [sys.executable, "-c", program, query],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            text=True,
        )
        assert collector.stdout
        with collector:
            leash = psutil.Process(int(collector.stdout.readline()))
            [worker] = children_of(leash, 1)
            below = [leash, worker, *children_of(worker, started)]
            collector.send_signal(signal.SIGKILL)
        assert all(gone(process) for process in below)
        assert list(tmp_path.iterdir()) == []

    def test_what_it_started_elsewhere_goes_with_it(self, isolated: Callable[..., Backend]) -> None:
        """A server that a backend started in a session of its own ends when the backend is closed."""
        backend = planted(isolated("Daemonizes"))
        backend.recall(BOX, "ferry", 5)
        [server] = children_of(worker_of(backend), 1)
        backend.close()
        assert not server.is_running()

    def test_one_that_does_not_read_is_left(self, isolated: Callable[..., Backend]) -> None:
        """Leaving a worker behind never waits for it, be it stopped in the middle of a long question."""
        backend = planted(isolated("Shelf"))
        worker = worker_of(backend)
        worker.suspend()
        line = Line(1.0, threading.Event())
        with pytest.raises(BackendGone, match="no answer within 1 s"):
            line(lambda: backend.remember(BOX, [Memory("m-2", "x" * 10_000_000)]))
        backend.abandon()
        assert not worker.is_running()
        line.close()

    def test_opening_has_a_limit_of_its_own(
        self, isolated: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An adapter that never opens is told so, and its worker is gone."""
        monkeypatch.setattr("collectors.backends.isolated.OPENING_S", 1.0)
        with pytest.raises(BackendGone, match="did not open within 1 s"):
            isolated("SlowToOpen")

    def test_what_opens_too_late_is_let_go(self) -> None:
        """A handle that was abandoned while it opened is closed by whoever opened it."""
        opening, go_on, left = threading.Event(), threading.Event(), list[str]()

        class Late(Backend):
            def abandon(self) -> None:
                left.append("abandoned")

        def open(config: BackendConfig) -> Backend:
            opening.set()
            go_on.wait(30)
            return Late()  # type: ignore[abstract]

        instance = Instance(BackendConfig("late", "late"), open)

        def wait() -> None:
            with pytest.raises(BackendGone, match="nobody waited"):
                instance.handle()

        thread = threading.Thread(target=wait)
        thread.start()
        opening.wait(30)
        instance.abandon(None)
        go_on.set()
        thread.join(30)
        assert left == ["abandoned"]

    def test_closing_has_a_limit(
        self, isolated: Callable[..., Backend], tmp_path: Path, ask: Callable[..., Any]
    ) -> None:
        """A store that never closes keeps no run from ending, and its worker does not outlive it."""
        (tmp_path / "memtrend.toml").write_text(
            f'[backends.ours]\ntype = "{ODD}SlowToClose"\npackage = "six==1.17.0"\n[limits]\ntimeout = 3\n'
        )
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        done = ask(tmp_path, "run", "--suite", "smoke", "--json")
        assert json.loads(done.stdout)["runs"][0]["status"] == "whole"
        left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
        assert [child for child in left if "worker.py" in " ".join(child.cmdline())] == []

    def test_what_both_left_behind_is_swept(self, isolated: Callable[..., Backend], tmp_path: Path) -> None:
        """A folder that neither collector nor worker holds goes when the next worker starts, others stay."""
        left, held, strange = (tmp_path / "scratch" / f"memtrend-worker-{name}" for name in "abc")
        for folder in (left, held):
            folder.mkdir()
            (folder / LOCK).touch()
        strange.mkdir()
        with (held / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            isolated("keyword").close()
        assert [folder.exists() for folder in (left, held, strange)] == [False, True, True]
        shutil.rmtree(held)
        strange.rmdir()
