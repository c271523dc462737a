"""A backend in an environment of its own answers as it would in process."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import SecretStr

from collectors import envs
from collectors.backend import Backend, BackendConfig, BackendError, BackendGone, Isolation, open_backend
from collectors.backends.isolated import _beside
from collectors.contract import adapter_checks
from collectors.suite import SHIPPED, Memory, Plant, load
from collectors.timing import timed
from store import queries
from store.database import open_database
from tests.collectors.backends.isolating import BOX, FERRY, ROOT, SMALL, isolated, planted, worker_of
from tests.collectors.backends.odd_releases import ODD

__all__ = ["isolated"]
"""A fixture of the tests here."""


class TestAnswers:
    def test_as_in_process(self, isolated: Callable[..., Backend], tmp_path: Path) -> None:
        """The same hits in the same order, with scores equal to 1e-6, texts and metadata to the letter."""
        memories = [memory for step in load(SHIPPED["golden"]).scenarios[0].steps if isinstance(step, Plant)
                    for memory in step.memories]  # fmt: skip
        here, there = open_backend(BackendConfig("here", "keyword")), isolated("keyword")
        for backend in (here, there):
            planted(backend, *memories)
        for probe in load(SHIPPED["golden"]).scenarios[0].probes:
            expected, found = (backend.recall(BOX, probe.query, 10).hits for backend in (here, there))
            assert [(hit.id, hit.text, hit.metadata) for hit in found] == [
                (hit.id, hit.text, hit.metadata) for hit in expected
            ]
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-6)
        assert there.count(BOX) == here.count(BOX)
        assert (there.capabilities, there.legs) == (here.capabilities, here.legs)

    def test_its_adapter_is_whole(self, isolated: Callable[..., Backend]) -> None:
        """The checks made before every run pass over the pipe."""
        assert [
            check for check in adapter_checks(isolated("keyword"), "memtrend-check") if not check.ok
        ] == []

    def test_any_text_survives(self, isolated: Callable[..., Backend]) -> None:
        """Control characters and line separators, in text and id, both ways."""
        text, id = "a\nb\r\0\x1f\u2028\U0001f980", "m \r\n\0"
        backend = planted(isolated("Shelf", lost="none"), Memory(id, text))
        [hit] = backend.recall(BOX, text, 5).hits
        assert (hit.id, hit.text) == (id, text)

    def test_what_json_has_no_word_for(self, isolated: Callable[..., Backend]) -> None:
        """An infinite score comes back as it is, other values as their text."""
        [hit] = planted(isolated("Exotic")).recall(BOX, "ferry", 5).hits
        assert (hit.text, hit.score) == ("café \ud800 \0 \u2028", float("inf"))
        assert hit.metadata == {"at": "{1, 2}", "raw": "b'\\xff'"}

    def test_declares_what_the_adapter_does(self, isolated: Callable[..., Backend]) -> None:
        """No less and no more, but for `concurrent`: a pipe is asked one thing after the other."""
        backend = isolated("Shelf")
        assert backend.capabilities == {"ids", "count", "forget"}
        with pytest.raises(BackendError, match="does not declare 'amend'"):
            backend.amend(BOX, "m-1", "other")

    def test_usage_travels(self, isolated: Callable[..., Backend]) -> None:
        """Calls, tokens and money of planting come back whole."""
        backend = isolated("Shelf")
        backend.reset(BOX)
        used = backend.remember(BOX, [FERRY, FERRY])
        assert (used.calls, used.tokens, used.money) == (1, 20, 0.001)


class TestTime:
    def test_is_the_worker_s(self, isolated: Callable[..., Backend]) -> None:
        """A latency is taken where the call is made: what the pipe adds is no part of it."""
        backend = planted(isolated("Slow"))
        started = time.perf_counter()
        ms = timed(lambda: backend.recall(BOX, "ferry", 5)).ms
        assert 300 <= ms < (time.perf_counter() - started) * 1000


class TestErrors:
    @pytest.mark.parametrize(
        ("query", "said", "permanent"),
        [
            ("bug", "TypeError: recall() got an unexpected keyword", True),
            ("network", "ConnectionError: reset by peer", False),
            ("permanent", "the key was refused", True),
            ("passing", "try again later", False),
            ("exit", "SystemExit: 3", True),
        ],
    )
    def test_are_told_as_the_adapter_does(
        self, isolated: Callable[..., Backend], query: str, said: str, permanent: bool
    ) -> None:
        """With kind and message, and whether asking again may help; the worker lives on."""
        backend = planted(isolated("Raises"))
        with pytest.raises(BackendError) as raised:
            backend.recall(BOX, query, 5)
        assert (str(raised.value), raised.value.permanent) == (said, permanent)
        assert not isinstance(raised.value, BackendGone)
        assert backend.count(BOX) == {"memories": 1}

    def test_what_no_adapter_may_return(self, isolated: Callable[..., Backend]) -> None:
        """Wrong types are told as the adapter's fault."""
        backend = isolated("Strange")
        backend.reset(BOX)
        with pytest.raises(BackendError, match=r"Strange\.remember is dict"):
            backend.remember(BOX, [FERRY])
        with pytest.raises(BackendError, match=r"Strange\.recall"):
            backend.recall(BOX, "ferry", 5)

    def test_metadata_without_words(self, isolated: Callable[..., Backend]) -> None:
        """What JSON cannot tell is an error of that call, and the worker lives on."""
        backend = planted(isolated("Odd"))
        with pytest.raises(BackendError, match="what JSON cannot tell"):
            backend.recall(BOX, "ferry", 5)
        assert backend.count(BOX) == {"memories": 1}

    def test_an_adapter_that_does_not_open(self, isolated: Callable[..., Backend]) -> None:
        """Says why, as it does in process, and its worker is gone."""
        before = {child.pid for child in psutil.Process().children()}
        with pytest.raises(BackendError, match="keyword takes no path") as raised:
            isolated("keyword", path="somewhere")
        assert raised.value.permanent
        assert {child.pid for child in psutil.Process().children()} == before

    def test_a_missing_sdk(self, isolated: Callable[..., Backend]) -> None:
        """An environment without the adapter's package is told in words."""
        with pytest.raises(BackendError, match="mem0"):
            isolated("mem0")

    def test_no_secret_is_told(self, isolated: Callable[..., Backend]) -> None:
        """A secret reaches the adapter in the clear, and stands in no command line and no environment."""
        backend = isolated("Shelf", journal=SecretStr("/dev/null"))
        planted(backend)
        process = worker_of(backend)
        assert "/dev/null" not in " ".join([*process.cmdline(), *process.environ().values()])


class TestSurroundings:
    def test_a_local_one_is_told_no_secret_of_others(
        self, isolated: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where a backend needs this machine alone, its worker is told little of our environment; a class of
        the user's own may need any of it."""
        monkeypatch.setenv("SOMEBODY_ELSES_KEY", "secret")
        assert "SOMEBODY_ELSES_KEY" not in worker_of(isolated("keyword")).environ()
        assert "SOMEBODY_ELSES_KEY" in worker_of(isolated("Surroundings")).environ()

    @pytest.mark.parametrize(
        ("type", "files"),
        [
            ("mine:Ours", {"mine.py": "CODE"}),
            ("mypkg:Ours", {"mypkg/__init__.py": "CODE"}),
            ("deep.er.mem:Ours", {"deep/__init__.py": "import six", "deep/er/mem.py": "CODE"}),
        ],
    )
    def test_a_class_of_the_user_s_is_found(
        self,
        isolated: Callable[..., Backend],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        type: str,
        files: dict[str, str],
    ) -> None:
        """As a module, in a package, and where that imports what only the environment has; nothing of it is
        imported here."""
        code = "import six\nfrom tests.collectors.odd_backends import Shelf\nclass Ours(Shelf): pass\n"
        code = f"import sys\nsys.path.append({str(ROOT)!r})\n{code}"
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text.replace("CODE", code))
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
        backend = isolated("keyword")
        backend = open_backend(BackendConfig("ours", type, {}, isolation=SMALL))
        assert [hit.id for hit in planted(backend).recall(BOX, "ferry", 5).hits] == ["m-1"]
        backend.close()
        assert type.partition(":")[0].partition(".")[0] not in sys.modules

    def test_nothing_that_is_installed_here_is_lent(self) -> None:
        """A class out of memtrend's own environment is looked for in the worker's, which has packages of
        its own."""
        assert _beside("numpy.linalg:Norm") == []
        assert _beside("keyword") == []


class TestPrinting:
    def test_no_word_is_cut(self, isolated: Callable[..., Backend]) -> None:
        """Half a secret would not be known for one: where something is left out, whole words are."""
        backend = planted(isolated("Tells"))
        backend.recall(BOX, "ferry", 5)
        backend.close()
        assert "[...]" in backend.journal()
        assert "supersec" not in backend.journal()

    def test_is_kept_and_spoils_no_answer(self, isolated: Callable[..., Backend]) -> None:
        """What is printed, by whomever, goes to the journal: its beginning and its end."""
        backend = planted(isolated("Chats"))
        assert [hit.id for hit in backend.recall(BOX, "ferry", 5).hits] == ["m-1"]
        backend.close()
        told = backend.journal()
        for said in ("print() was here", "so was C", "and a child", "the end of it"):
            assert said in told
        assert len(told) < 40_000

    def test_tracebacks_too(self, isolated: Callable[..., Backend]) -> None:
        """Where an adapter failed is in the journal, though the answer has one line."""
        backend = planted(isolated("Raises"))
        with pytest.raises(BackendError):
            backend.recall(BOX, "bug", 5)
        backend.close()
        assert "odd_releases.py" in backend.journal()


class TestEnvironment:
    def test_is_the_worker_s(self, isolated: Callable[..., Backend]) -> None:
        """Packages and Python are those that the backend runs with, and none of memtrend's."""
        told = isolated("keyword").environment()
        assert told is not None
        assert told["packages"] == {"six": "1.17.0"}
        assert told["of_backend"] == {"six": {}}

    def test_of_another_python(self, isolated: Callable[..., Backend]) -> None:
        """A Python by its path is the one that answers."""
        system = Path("/usr/bin/python3")
        if not system.exists():
            pytest.skip("this machine has no Python of the system's")
        said = subprocess.run([system, "-V"], capture_output=True, text=True, check=True).stdout
        backend = isolated("keyword", isolation=Isolation("six==1.17.0", python=str(system)))
        told = backend.environment()
        assert told is not None
        assert f"Python {told['python']}" == said.strip()

    def test_home_and_temporary_folder_are_its_own(self, isolated: Callable[..., Backend]) -> None:
        """What an SDK writes into the home of its user goes with the worker; ours are not told to it."""
        environ = worker_of(isolated("keyword")).environ()
        assert Path(environ["HOME"]).name.startswith("memtrend-worker-")
        assert environ["TMPDIR"] == environ["HOME"]
        assert not [name for name in environ if name.startswith(("MEMTREND_", "PYTHONPATH"))]


def stored_environment(folder: Path, run_id: int) -> dict[str, Any]:
    db = open_database(f"sqlite:///{folder / 'memtrend.db'}")
    stored = queries.run(db, run_id)
    assert stored is not None
    assert stored.environment_id is not None
    found = queries.environment(db, stored.environment_id)
    db.close()
    assert found is not None
    return found


class TestAtTheCommandLine:
    """What a user sees of a release."""

    TOML = """
        [environments]
        directory = "envs"
        [backends.ours]
        type = "{type}"
        package = "six==1.17.0"
    """

    def project(self, folder: Path, type: str) -> Path:
        text = textwrap.dedent(self.TOML.format(type=type))
        (folder / "memtrend.toml").write_text(text, encoding="utf-8")
        return folder

    def test_a_run_keeps_it_all(self, tmp_path: Path, ask: Callable[..., Any]) -> None:
        """The record has the environment of the worker, and what it printed, with the run."""
        folder = self.project(tmp_path, f"{ODD}Chats")
        done = ask(folder, "run", "--suite", "smoke", "--json")
        [run] = json.loads(done.stdout)["runs"]
        assert (done.returncode, run["status"]) == (0, "whole")
        environment = stored_environment(folder, run["id"])
        assert environment["packages"] == {"six": "1.17.0"}
        assert environment["config"]["package"] == "six==1.17.0"
        shown = ask(folder, "show", str(run["id"]), "--json")
        assert "so was C" in json.loads(shown.stdout)["journal"]
        assert "so was C" in ask(folder, "show", str(run["id"])).stdout

    def test_environments_are_listed_made_and_removed(self, tmp_path: Path, ask: Callable[..., Any]) -> None:
        """`backend envs` says which there are, makes those of the configuration, removes the old ones."""
        folder = self.project(tmp_path, "keyword")
        nothing = json.loads(ask(folder, "backend", "envs", "--json").stdout)
        assert nothing == {
            "environments": [],
            "removed": [],
            "failed": [],
        }
        [made] = json.loads(ask(folder, "backend", "envs", "--make", "--json").stdout)["environments"]
        assert (made["package"], made["with"], made["locked"], made["in_use"]) == (
            *("six==1.17.0", [], False, False),
        )
        assert made["bytes"] > 0
        assert "six==1.17.0" in ask(folder, "backend", "envs").stdout
        kept = json.loads(ask(folder, "backend", "envs", "--clean", "--json").stdout)
        assert kept["removed"] == []
        gone = ask(folder, "backend", "envs", "--clean", "--older-than", "0s")
        assert f"removed {made['name']}" in gone.stdout
        assert list((folder / "envs").glob("*/")) == []

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--older-than", "7d"], "--older-than goes with --clean"),
            (["--clean", "--older-than", "soon"], "--older-than should be a number and a unit"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, tmp_path: Path, ask: Callable[..., Any], arguments: list[str], said: str
    ) -> None:
        """With exit code 2, and what is expected."""
        done = ask(self.project(tmp_path, "keyword"), "backend", "envs", *arguments)
        assert done.returncode == 2
        assert said in done.stderr

    def test_making_an_environment_may_take_longer_than_a_call(
        self, tmp_path: Path, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`limits.timeout` is for calls: a download that takes its time voids no run."""
        folder = self.project(tmp_path, "keyword")
        with (folder / "memtrend.toml").open("a", encoding="utf-8") as file:
            file.write("[limits]\ntimeout = 2.5\n")
        slow = tmp_path / "uv"
        slow.write_text(f'#!/bin/sh\nsleep 1.5\nexec {envs._uv()} "$@"\n')
        slow.chmod(0o755)
        monkeypatch.setattr(envs, "_uv", lambda: str(slow))
        done = ask(folder, "run", "--suite", "smoke", "--json")
        assert json.loads(done.stdout)["runs"][0]["status"] == "whole"

    def test_a_release_that_is_not_there_voids_the_run(self, tmp_path: Path, ask: Callable[..., Any]) -> None:
        """The run says what uv said, and nothing was asked."""
        folder = self.project(tmp_path, "keyword")
        text = (folder / "memtrend.toml").read_text().replace("1.17.0", "0.0.987")
        (folder / "memtrend.toml").write_text(text)
        done = ask(folder, "run", "--suite", "smoke")
        assert "void" in done.stdout + done.stderr
        assert "no version of six==0.0.987" in done.stdout + done.stderr


@pytest.mark.skipif(find_spec("mem0") is None, reason="make install EXTRAS=mem0")
def test_mem0_answers_as_in_process(isolated: Callable[..., Backend]) -> None:
    """A real SDK with memtrend's embedder over loopback gives equal ranks, and scores to 1e-6."""
    release = Isolation(f"mem0ai=={version('mem0ai')}")
    here = open_backend(BackendConfig("here", "mem0"))
    there = isolated("mem0", isolation=release)
    scenario = load(SHIPPED["golden"]).scenarios[0]
    plants = [memory for step in scenario.steps if isinstance(step, Plant) for memory in step.memories]
    for backend in (here, there):
        planted(backend, *plants)
    for probe in scenario.probes[:20]:
        expected, found = (backend.recall(BOX, probe.query, 10).hits for backend in (here, there))
        assert [hit.id for hit in found] == [hit.id for hit in expected]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-6)
    here.close()
