"""The collector's embedder for its workers, as an OpenAI-compatible `/v1/embeddings` on loopback.

A worker has no embedder, and must have the very one that backends in process have. Whoever asks shows the
token of the server, which lives as long as one open backend. Vectors are kept by the hash of their text: a
golden suite is the same text every night.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from collectors.backend import BackendError
from collectors.embedding import Embedder, embedder_versions, open_embedder

KEPT = 32 * 2**20
"""Bytes of vectors kept of an embedder: 32,000 of wordllama's, 2,700 of one with 3,072 dimensions."""
LARGEST = 256 * 2**20
"""Bytes of a request."""


class EmbeddingServer:
    """Serves until `close`. The embedder is opened with the first request: a backend may need none."""

    def __init__(self, spec: str | Mapping[str, Any]) -> None:
        self.spec, self.token = spec, secrets.token_urlsafe(24)
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.serving = self
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def described(self) -> dict[str, Any]:
        """What an adapter asks of an embedder beside its vectors."""
        embedder = open_embedder(self.spec)
        return {
            "name": embedder.name,
            "dimensions": embedder.dimensions,
            "deterministic": embedder.deterministic,
            "versions": embedder_versions(embedder),
        }

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """As https://platform.openai.com/docs/api-reference/embeddings has it. Raises ValueError for what
        such a server refuses, `BackendError` where the embedder fails."""
        given = body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("input must be a text or a list of texts")
        encode = _as_base64 if body.get("encoding_format") == "base64" else _as_list
        embedder = open_embedder(self.spec)
        vectors = _kept_for(embedder).embed(texts)
        data = [
            {"object": "embedding", "index": place, "embedding": encode(vector)}
            for place, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "data": data, "model": embedder.name, "usage": usage}


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    serving: EmbeddingServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet: a second one would wait for the first one's receipt
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer({"/v1/embedder": self._serving.described, "/v1/models": self._models})

    def do_POST(self) -> None:
        self._answer({"/v1/embeddings": lambda: self._serving.answer(self._body())})

    @property
    def _serving(self) -> EmbeddingServer:
        assert isinstance(self.server, _Http)
        return self.server.serving

    def _models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": self._serving.described()["name"], "object": "model"}]}

    def _answer(self, routes: Mapping[str, Any]) -> None:
        route = routes.get(self.path.partition("?")[0])
        if not self._knows_the_token():
            self._say(HTTPStatus.UNAUTHORIZED, _complaint("the token of this run is missing"))
        elif route is None:
            self._say(HTTPStatus.NOT_FOUND, _complaint("this serves embeddings, and nothing else"))
        else:
            self._say(*_attempted(route))

    def _knows_the_token(self) -> bool:
        shown = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return compare_digest(shown.encode(), self._serving.token.encode())

    def _body(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= LARGEST:
            self.close_connection = True
            raise ValueError(f"a body of 1 to {LARGEST} bytes is expected")
        body = json.loads(self.rfile.read(length).decode("utf-8", "surrogatepass"))
        if not isinstance(body, dict):
            raise ValueError("the body must be an object")
        return body

    def _say(self, status: HTTPStatus, document: Mapping[str, Any]) -> None:
        said = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        if status != HTTPStatus.OK:  # its body may not have been read
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nobody reads it."""


def _attempted(route: Any) -> tuple[HTTPStatus, dict[str, Any]]:
    try:
        return HTTPStatus.OK, route()
    except ValueError as error:
        return HTTPStatus.BAD_REQUEST, _complaint(str(error))
    except BackendError as error:
        status = HTTPStatus.UNPROCESSABLE_ENTITY if error.permanent else HTTPStatus.SERVICE_UNAVAILABLE
        return status, _complaint(str(error))


def _complaint(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


def _as_list(vector: np.ndarray) -> list[float]:
    numbers: list[float] = vector.tolist()
    return numbers


def _as_base64(vector: np.ndarray) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


class _Kept:
    """Vectors of one embedder, the least recently used one forgotten first. What is missing of a request is
    embedded in one go."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._lock = embedder, threading.Lock()
        self._vectors: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._bytes = 0

    def embed(self, texts: Sequence[str]) -> list[np.ndarray]:
        keys = [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        with self._lock:
            found = {key: self._vectors[key] for key in keys if key in self._vectors}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            found |= zip(missing, self._embedder.embed(list(missing.values())), strict=True)
        self._keep({key: found[key] for key in keys})
        return [found[key] for key in keys]

    def _keep(self, vectors: Mapping[bytes, np.ndarray]) -> None:
        with self._lock:
            for key, vector in vectors.items():
                if key not in self._vectors:
                    self._vectors[key] = vector.copy()  # a row alone would keep all of its batch
                    self._bytes += vector.nbytes
                self._vectors.move_to_end(key)
            while self._bytes > KEPT:
                self._bytes -= self._vectors.popitem(last=False)[1].nbytes


_all_kept: dict[int, _Kept] = {}


def _kept_for(embedder: Embedder) -> _Kept:
    """One for each embedder of the process; those live as long as it does."""
    return _all_kept.setdefault(id(embedder), _Kept(embedder))
