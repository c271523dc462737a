"""Workers get the vectors that backends in process get, from the collector, and nobody else gets any."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import httpx
import numpy as np
import pytest

from collectors import embedding, embedding_server
from collectors.backend import BackendConfig, BackendError
from collectors.backends.handed import SERVED, HandedIn, handed_in
from collectors.embedding import TextEmbedder, open_embedder
from collectors.embedding_server import EmbeddingServer

TEXTS = ["The ferry leaves at seven.", "", "a lone \ud800 surrogate", "The ferry leaves at seven."]


class Counting(TextEmbedder):
    """Remembers what it was asked, and fails where a text says so."""

    name, dimensions, deterministic, fingerprint = "counting", 2, True, {"model": "2"}

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        self.asked.append(list(texts))
        if "permanent" in texts or "passing" in texts:
            raise BackendError("the model is gone", permanent="permanent" in texts)
        return np.array([[len(text), 1.0] for text in texts])


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    embedder = Counting()
    monkeypatch.setitem(embedding.LOCAL, "counting", lambda: embedder)
    monkeypatch.setattr(embedding, "_opened", {})
    return embedder


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(getattr(request, "param", "wordllama"))
    yield server
    server.close()


def handed(server: EmbeddingServer) -> HandedIn:
    return handed_in(BackendConfig("b", "keyword", {}, {SERVED: {"url": server.url, "token": server.token}}))


def post(server: EmbeddingServer, body: Any, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token or server.token}"}
    return httpx.post(f"{server.url}/embeddings", content=json.dumps(body), headers=headers)


def test_same_vectors_as_in_process(server: EmbeddingServer) -> None:
    """To the bit, blanks and lone surrogates too; and everything else that a backend asks of an embedder."""
    here, there = handed_in(BackendConfig("b", "keyword")), handed(server)
    assert there.embed(TEXTS) == here.embed(TEXTS)
    assert (there.dimensions, there.deterministic) == (here.dimensions, here.deterministic)
    assert there.versions == here.versions
    assert there.embed([]) == []


@pytest.mark.parametrize("server", ["counting"], indirect=True)
def test_a_text_is_embedded_once(counting: Counting, server: EmbeddingServer) -> None:
    """What is new of a request goes to the embedder in one go, what was asked before does not, be it by
    another worker."""
    handed(server).embed(["a", "bb", "a"])
    handed(server).embed(["bb", "ccc"])
    other = EmbeddingServer("counting")
    handed(other).embed(["ccc", "a"])
    other.close()
    assert counting.asked == [["a", "bb"], ["ccc"]]


@pytest.mark.parametrize("server", ["counting"], indirect=True)
def test_what_is_kept_has_a_bound(
    counting: Counting, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vectors not asked for longest are forgotten first."""
    monkeypatch.setattr(embedding_server, "KEPT", 16)  # two vectors of two
    client = handed(server)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        client.embed([text])
    assert counting.asked == [["a"], ["bb"], ["ccc"], ["bb"]]


@pytest.mark.parametrize("server", ["counting"], indirect=True)
@pytest.mark.parametrize(("text", "permanent"), [("permanent", True), ("passing", False)])
def test_a_failing_embedder_is_told(
    counting: Counting, server: EmbeddingServer, text: str, permanent: bool
) -> None:
    """With its own words, and whether asking again may help."""
    with pytest.raises(BackendError, match="the model is gone") as raised:
        handed(server).embed([text])
    assert raised.value.permanent is permanent


def test_an_unknown_embedder_is_told() -> None:
    """When a backend first asks for it: one that needs none is not kept from running."""
    server = EmbeddingServer("wordlama")
    with pytest.raises(BackendError, match="unknown embedder 'wordlama'"):
        handed(server)
    server.close()


def test_only_those_who_know_the_token(server: EmbeddingServer) -> None:
    """Another user of the machine gets nothing, and neither does the worker of another run."""
    other = EmbeddingServer("wordllama")
    for token in ("wrong", other.token, "ü"):
        response = httpx.post(
            f"{server.url}/embeddings",
            json={"input": "x"},
            headers={"Authorization": f"Bearer {token}".encode()},
        )
        assert response.status_code == 401
    assert httpx.get(f"{server.url}/embedder").status_code == 401
    other.close()


@pytest.mark.parametrize(
    "body",
    [{}, {"input": None}, {"input": [1, 2]}, {"input": ["a", 1]}, [], "text", {"input": [[1, 2]]}],
)
def test_other_shapes_are_refused(server: EmbeddingServer, body: Any) -> None:
    """With 400 and a reason, in the shape that such servers have."""
    response = post(server, body)
    assert response.status_code == 400
    assert response.json()["error"]["message"]


def test_nothing_else_is_served(server: EmbeddingServer) -> None:
    """Other paths are 404, and a body that is not JSON is refused."""
    headers = {"Authorization": f"Bearer {server.token}"}
    base = server.url.removesuffix("/v1")
    assert httpx.post(f"{base}/v1/chat/completions", json={}, headers=headers).status_code == 404
    assert httpx.get(f"{base}/", headers=headers).status_code == 404
    assert httpx.post(f"{server.url}/embeddings", content=b"{", headers=headers).status_code == 400
    assert httpx.get(f"{server.url}/models", headers=headers).json()["data"][0]["id"] == "wordllama"


def test_base64(server: EmbeddingServer) -> None:
    """Little-endian float32, as the vendor's client asks for it."""
    said = post(server, {"input": ["ferry"], "encoding_format": "base64"}).json()["data"][0]["embedding"]
    vector = np.frombuffer(base64.b64decode(said), "<f4")
    assert vector.tolist() == open_embedder("wordllama").embed(["ferry"])[0].tolist()


@pytest.mark.skipif(find_spec("openai") is None, reason="make install EXTRAS=mem0")
def test_the_vendor_s_own_client_understands_it(server: EmbeddingServer) -> None:
    """openai's client gets the vectors, and its own error for a wrong key."""
    import openai

    with openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0) as client:
        answer = client.embeddings.create(model="any", input=["ferry", "harbour"])
    expected = open_embedder("wordllama").embed(["ferry", "harbour"])
    assert np.array([entry.embedding for entry in answer.data], np.float32).tolist() == expected.tolist()
    with (
        openai.OpenAI(base_url=server.url, api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.embeddings.create(model="any", input="ferry")


@pytest.mark.parametrize("server", ["counting"], indirect=True)
def test_long_texts_go_in_requests_of_their_own(counting: Counting, server: EmbeddingServer) -> None:
    """However much is to be embedded at once, no request is larger than it has to be, and none is refused."""
    texts = ["x" * 600_000, "y" * 600_000, "\u65e5" * 3_000_000, "z"]
    assert len(handed(server).embed(texts)) == 4
    assert [len(asked) for asked in counting.asked] == [1, 1, 1, 1]


def test_many_at_once(server: EmbeddingServer) -> None:
    """Threads of a vendor's may ask side by side; each gets its own answer."""
    client, found = handed(server), dict[int, list[list[float]]]()
    texts = [[f"boat {n}", f"gate {n}"] for n in range(16)]
    threads = [
        threading.Thread(target=lambda n=n: found.__setitem__(n, client.embed(texts[n]))) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here = handed_in(BackendConfig("b", "keyword"))
    assert [found[n] for n in range(16)] == [here.embed(pair) for pair in texts]


def test_nobody_answers_after_closing() -> None:
    """The port is free again, and a worker that still asks is told in words."""
    server = EmbeddingServer("wordllama")
    client = handed(server)
    server.close()
    with pytest.raises(BackendError, match="the collector's embedder did not answer"):
        client.embed(["ferry"])
