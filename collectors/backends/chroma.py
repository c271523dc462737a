"""Chroma: in memtrend's own directory, or a server with `config`.

Options: `space` (l2, cosine, ip; left out it is the vendor's default), `config` (what `HttpClient` takes:
host, port, ssl, headers, tenant, database). A namespace is a collection; users, sessions and domains are
filters over metadata, as one collection for many users is asked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from collectors.backend import BackendConfig, Hit
from collectors.backends.base import ID_KEY, PASSING_STATUS, faulty
from collectors.backends.boxes import (
    MARK,
    Box,
    Boxes,
    OwnDirectory,
    Question,
    Row,
    missing_package,
    options_of,
    refuse_keys,
)
from collectors.backends.fence import leads_here

PACKAGE = "chromadb==1.5.9"
SERVER_KEYS = frozenset({"host", "port", "ssl", "headers", "tenant", "database"})
SPACES = ("cosine", "ip", "l2")
NESTED = "memtrend_nested"
"""Names the metadata that travels as JSON text, since the vendor takes texts, numbers and booleans."""
LONGEST_INTEGER = 2**63


class Chroma(Boxes):
    vendor = "chroma"
    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        options = options_of(config, ("config", "space"))
        refuse_keys(config, SERVER_KEYS)
        self._server: Mapping[str, Any] = options.get("config") or {}
        self._space = options.get("space")
        if self._space not in (None, *SPACES):
            raise faulty(config, f"unknown space {self._space!r}; known: {', '.join(SPACES)}")
        if self._server and "host" not in self._server:
            raise faulty(config, "config needs a host")
        # Not exact: threads build the approximate index, and from some 3,000 rows on no two builds agree.
        super().__init__(config, own=not self._server, exact=False)
        self._chromadb = _chromadb()
        self._directory = None if self._server else OwnDirectory(config)
        with self._explained(f"configuration of backend {config.name}"):
            self._client = self._opened()
            self._batch = self._client.get_max_batch_size()

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        server = config.options.get("config") or {}
        return not server or leads_here(server.get("host"))

    def versions(self) -> Mapping[str, str]:
        server = {"chroma_server": str(self._client.get_version())} if self._server else {}
        return {
            "chromadb": version("chromadb"),
            **server,
            "space": self._space or "the vendor's default",
            **self._embedder.versions,
        }

    def close(self) -> None:
        self._client.close()
        if self._directory:
            self._directory.close()

    def _opened(self) -> Any:
        if self._directory:
            return self._chromadb.PersistentClient(str(self._directory.path))
        return self._chromadb.HttpClient(**self._server)

    def _box(self, namespace: str) -> Box | None:
        try:
            # Without a function of its own: the vendor's default one would be downloaded.
            return _Collection(self._client.get_collection(namespace, embedding_function=None), self._batch)
        except self._chromadb.errors.NotFoundError:
            return None

    def _make(self, namespace: str) -> Box:
        chosen = {"configuration": {"hnsw": {"space": self._space}}} if self._space else {}
        made = self._client.create_collection(
            namespace, embedding_function=None, metadata={MARK: self._mark}, **chosen
        )
        return _Collection(made, self._batch)

    def _drop(self, namespace: str) -> None:
        self._client.delete_collection(namespace)

    def _is_permanent(self, error: Exception) -> bool:
        if isinstance(error, self._chromadb.errors.ChromaError):
            return 400 <= error.code() < 500 and error.code() not in PASSING_STATUS
        # Of a server that is not there it makes a ValueError, too.
        return isinstance(error, ValueError) and "Could not connect" not in str(error)


class _Collection:
    def __init__(self, collection: Any, batch: int) -> None:
        """`batch`: how many rows one call may carry."""
        self._collection, self._batch = collection, batch
        self.mark = (collection.metadata or {}).get(MARK)

    def strangers(self) -> int:
        rows = self._collection.get(include=["metadatas"])["metadatas"]
        return sum(ID_KEY not in (metadata or {}) for metadata in rows)

    def put(self, rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), self._batch):
            some = rows[start : start + self._batch]
            self._collection.upsert(
                ids=[row.key for row in some],
                documents=[row.text for row in some],
                embeddings=[row.vector for row in some],
                metadatas=[_flat(row.metadata) for row in some],
            )

    def holds(self, key: str) -> bool:
        return bool(self._collection.get(ids=[key], include=[])["ids"])

    def search(self, question: Question) -> list[Hit]:
        found = self._collection.query(
            query_embeddings=[question.vector], n_results=question.k, where=_where(question)
        )
        columns = (found[name][0] for name in ("ids", "documents", "metadatas", "distances"))
        return [self._hit(*columns) for columns in zip(*columns, strict=True)]

    def edit(self, key: str, text: str, vector: list[float]) -> None:
        self._collection.update(ids=[key], documents=[text], embeddings=[vector])

    def delete(self, keys: Sequence[str]) -> None:
        self._collection.delete(ids=list(keys))

    def delete_user(self, user: str) -> None:
        self._collection.delete(where={"user": user})

    def count(self) -> Mapping[str, int]:
        return {"memories": self._collection.count()}

    def _hit(self, key: str, text: str, metadata: Mapping[str, Any], distance: float) -> Hit:
        """Under the planted id, or the vendor's own where memtrend did not plant it."""
        known = _nested(metadata)
        return Hit(known.pop(ID_KEY, key), text, self._score(distance), known)

    def _score(self, distance: float) -> float:
        """As the vendor defines its distances: of cosine and ip 1 is taken to make one of a likeness, and l2
        is the squared distance itself, without an upper end."""
        is_likeness = self._collection.configuration["hnsw"]["space"] in ("cosine", "ip")
        return 1 - distance if is_likeness else -distance


def _where(question: Question) -> dict[str, Any]:
    scope = question.scope
    asked: list[dict[str, Any]] = [{"user": scope.user}]
    asked += [{"session": scope.session}] if scope.session is not None else []
    asked += [{"domain": {"$in": list(scope.domains)}}] if scope.domains else []
    return {"$and": asked} if len(asked) > 1 else asked[0]


def _flat(metadata: Mapping[str, Any]) -> dict[str, Any]:
    nested = sorted(name for name, value in metadata.items() if not _is_plain(value))
    texts = {name: json.dumps(metadata[name], default=str) for name in nested}
    return {**metadata, **texts, **({NESTED: json.dumps(nested)} if nested else {})}


def _nested(metadata: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(metadata)
    names = json.loads(known.pop(NESTED, "[]"))
    return {**known, **{name: json.loads(known[name]) for name in names}}


def _is_plain(value: Any) -> bool:
    if isinstance(value, int):
        return -LONGEST_INTEGER <= value < LONGEST_INTEGER
    return isinstance(value, str | float)


def _chromadb() -> Any:
    os.environ["ANONYMIZED_TELEMETRY"] = "False"  # every client's settings are read from there
    try:
        import chromadb
        import chromadb.errors
    except ImportError as error:
        raise missing_package(PACKAGE) from error
    return chromadb
