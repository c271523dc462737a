"""qdrant: its local mode compares with every vector, and what others keep in it is left alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.backend import BackendConfig, BackendError, Isolation
from collectors.backends.qdrant import PACKAGE, Qdrant
from tests.collectors.backends.boxes import (
    BOX,
    FERRY,
    ODD_METADATA,
    VIOLIN,
    Beside,
    Open,
    answering,
    found,
    opening,
    plant,
    ranks_as_exact_cosine,
)

ISOLATION = Isolation(PACKAGE)
SECRET = "very-secret-1234"
FOREIGN = """
import sys
from qdrant_client import QdrantClient, models
client, name = QdrantClient(path=sys.argv[1]), sys.argv[2]
if not client.collection_exists(name):
    vectors = models.VectorParams(size=256, distance=models.Distance.COSINE)
    client.create_collection(name, vectors_config=vectors)
client.upsert(name, [models.PointStruct(id=1, vector=[1.0] * 256, payload={"text": "theirs"})])
client.close()
"""
LEFT = """
import sys
from qdrant_client import QdrantClient
client = QdrantClient(path=sys.argv[1])
print({known.name: client.count(known.name).count for known in client.get_collections().collections})
client.close()
"""

BESIDE = Beside(ISOLATION, FOREIGN, LEFT)


@pytest.fixture
def open_qdrant() -> Iterator[Open]:
    yield from opening("qdrant", ISOLATION)


@pytest.mark.backends
class TestLocal:
    def test_ranks_and_scores_as_exact_cosine_does(self, open_qdrant: Open) -> None:
        """At the same embedder it answers as memtrend's own exact search: what differs is never the store."""
        ranks_as_exact_cosine(open_qdrant())

    def test_metadata_comes_back_equal(self, open_qdrant: Open) -> None:
        """A payload holds any JSON, and names of the adapter's own stand apart from it."""
        backend = open_qdrant()
        plant(backend, BOX, FERRY, metadata=ODD_METADATA)
        backend.amend(BOX, "m-0", VIOLIN)
        (hit,) = found(backend)
        assert hit.text == VIOLIN
        assert dict(hit.metadata) == {**ODD_METADATA, "role": "user", "user": "anna"}

    def test_forgetting_nothing_forgets_nothing(self, open_qdrant: Open) -> None:
        """An empty list of ids takes nothing away."""
        backend = open_qdrant()
        plant(backend, BOX, FERRY, VIOLIN)
        backend.forget(BOX, [])
        assert backend.count(BOX) == {"memories": 2}

    @pytest.mark.parametrize("begun", [False, True], ids=["collection", "point"])
    def test_what_others_made_is_left_alone(self, open_qdrant: Open, tmp_path: Path, begun: bool) -> None:
        """A collection that memtrend did not make, or that holds a point of somebody else's, is not reset."""
        BESIDE.is_left_alone(open_qdrant, tmp_path, begun)

    def test_a_reset_leaves_no_collection(self, open_qdrant: Open, tmp_path: Path) -> None:
        """A namespace that is dropped is gone from the vendor's list, too."""
        BESIDE.is_left_nothing(open_qdrant, tmp_path)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"distance": "dot"}, "unknown option 'distance'; known: config"),
            ({"config": {"api_key": SECRET}}, "config needs a url, or a host"),
            ({"config": {"path": "/data"}}, "config takes no 'path'; it takes api_key, "),
            ({"config": {"location": ":memory:"}}, "config takes no 'location'"),
        ],
    )
    def test_wrong_ones_are_told(self, options: dict[str, Any], said: str) -> None:
        """A fault in the section stops before anything is opened, and shows no value."""
        with pytest.raises(BackendError, match=said) as raised:
            Qdrant(BackendConfig("ours", "qdrant", options))
        assert raised.value.permanent
        assert SECRET not in str(raised.value)

    def test_without_the_package_it_says_what_to_add(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing SDK is told with the line that brings it."""
        monkeypatch.setitem(sys.modules, "qdrant_client", None)
        with pytest.raises(BackendError, match=f'add package = "{PACKAGE}"') as raised:
            Qdrant(BackendConfig("ours", "qdrant"))
        assert raised.value.permanent

    @pytest.mark.parametrize(
        ("server", "local"),
        [
            ({}, True),
            ({"url": "http://127.0.0.1:6333"}, True),
            ({"url": "localhost:6333"}, True),
            ({"host": "::1"}, True),
            ({"url": "http://[::1]:6333"}, True),
            ({"url": "https://qdrant.example:6333"}, False),
            ({"host": "qdrant.example"}, False),
            ({"url": "http://localhost.example"}, False),
        ],
    )
    def test_a_server_elsewhere_is_not_local(self, server: dict[str, Any], local: bool) -> None:
        """Only what this machine holds is fenced in."""
        assert Qdrant.is_local(BackendConfig("ours", "qdrant", {"config": server})) is local


@pytest.mark.backends
class TestServer:
    @pytest.mark.parametrize(("status", "permanent"), [(403, True), (429, False), (503, False)])
    def test_refusals_are_told_apart(self, open_qdrant: Open, status: int, permanent: bool) -> None:
        """A refused key is refused for good, a busy server is not; neither shows the key."""
        with answering(status) as (url, _):
            backend = open_qdrant(config={"url": url, "api_key": SECRET})
            with pytest.raises(BackendError, match=str(status)) as raised:
                backend.reset(BOX)
        assert raised.value.permanent is permanent
        assert SECRET not in str(raised.value) + backend.journal()

    def test_declares_what_a_server_can(self, open_qdrant: Open) -> None:
        """It may hold the same user's own memories, and its index is approximate."""
        with answering(200) as (url, _):
            backend = open_qdrant(config={"url": url})
        assert backend.capabilities == {"amend", "forget", "count", "durable", "ids", "metadata"}
