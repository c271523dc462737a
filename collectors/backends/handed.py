"""memtrend's embedder, as an adapter hands it to its vendor: lists of floats, in process and in a worker.

Stdlib only. A worker has no embedder of its own: the collector serves its one over loopback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any, Protocol
from urllib.parse import urlsplit

from collectors.backend import BackendConfig, BackendError
from collectors.timing import apart

SERVED = "served"
"""The key under which a worker's configuration says where the collector serves the embedder, and which."""
BATCH = 1_000_000
"""Characters of a request."""
TIMEOUT_S = 120.0


class HandedIn(Protocol):
    """`versions`: the embedder's name and fingerprint, as a backend reports them among its own.
    `deterministic`: equal texts give equal vectors, always."""

    dimensions: int
    deterministic: bool
    versions: Mapping[str, str]

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text, zeros for a blank one. Its time is no part of the backend's."""
        ...


def handed_in(config: BackendConfig) -> HandedIn:
    """The embedder that is configured for this backend. Raises `BackendError`."""
    spec = config.embedder
    if isinstance(spec, Mapping) and SERVED in spec:
        return _Served(spec[SERVED])
    return _Here(spec)


class _Here:
    def __init__(self, spec: str | Mapping[str, Any]) -> None:
        from collectors.embedding import embedder_versions, open_embedder  # numpy: not in a worker

        self._embedder = open_embedder(spec)
        self.dimensions, self.deterministic = self._embedder.dimensions, self._embedder.deterministic
        self.versions: Mapping[str, str] = embedder_versions(self._embedder)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed(texts).tolist()
        return vectors


class _Served:
    """Asks the collector, at `url` and with the `token` of this worker."""

    def __init__(self, spec: Mapping[str, str]) -> None:
        place = urlsplit(spec["url"])
        self._host, self._port, self._path = place.hostname or "", place.port, place.path
        self._headers = {"Authorization": f"Bearer {spec['token']}", "Content-Type": "application/json"}
        told = self._asked("GET", "embedder")
        self._model, self.dimensions = told["name"], told["dimensions"]
        self.deterministic, self.versions = told["deterministic"], told["versions"]

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        with apart():
            return [vector for batch in _batches(texts) for vector in self._vectors(batch)]

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        answer = self._asked("POST", "embeddings", {"model": self._model, "input": texts})
        return [entry["embedding"] for entry in sorted(answer["data"], key=lambda entry: entry["index"])]

    def _asked(self, method: str, what: str, body: Mapping[str, Any] | None = None) -> Any:
        # A connection for each request: threads of the vendor's may ask side by side, and loopback is cheap.
        connection = HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            document = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass") if body else None
            connection.request(method, f"{self._path}/{what}", document, self._headers)
            response = connection.getresponse()
            said = response.read()
        except (OSError, HTTPException) as error:
            raise BackendError(f"the collector's embedder did not answer: {error!r}") from error
        finally:
            connection.close()
        if response.status != 200:
            permanent = response.status < 500
            raise BackendError(f"the collector's embedder: {said[:500].decode()}", permanent=permanent)
        return json.loads(said)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Of so many characters that a request stays small; a text that is longer goes alone."""
    batch, size = list[str](), 0
    for text in texts:
        if batch and size + len(text) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
