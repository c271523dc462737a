"""Qdrant: its local mode in memtrend's own directory, or a server with `config`.

Option: `config` (what `QdrantClient` takes: url, api_key, timeout ...). A namespace is a collection; users,
sessions and domains are filters over the payload, as the vendor advises for many users in one collection.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

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

PACKAGE = "qdrant-client==1.20.0"
SERVER_KEYS = frozenset(
    "url host port grpc_port prefer_grpc https api_key prefix timeout headers check_compatibility".split()  # noqa: SIM905
)
DISTANCE = "Cosine"
USER, SESSION, DOMAIN = (f"metadata.{name}" for name in ("user", "session", "domain"))


class Qdrant(Boxes):
    vendor = "qdrant"
    legs = ()

    def __init__(self, config: BackendConfig) -> None:
        options = options_of(config, ("config",))
        refuse_keys(config, SERVER_KEYS)
        self._server: Mapping[str, Any] = options.get("config") or {}
        if self._server and not _host(self._server):
            raise faulty(config, "config needs a url, or a host")
        # The local mode compares with every vector, but opened again it may order exact ties another way.
        super().__init__(config, own=not self._server, exact=False)
        self._qdrant = _qdrant_client()
        self._directory = None if self._server else OwnDirectory(config)
        with self._explained(f"configuration of backend {config.name}"):
            path = {"path": str(self._directory.path)} if self._directory else {}
            self._client = self._qdrant.QdrantClient(**self._server, **path)
        # Left open, the vendor would complain at the end of the interpreter that modules are gone.
        atexit.register(self._client.close)

    @classmethod
    def is_local(cls, config: BackendConfig) -> bool:
        server = config.options.get("config") or {}
        return not server or leads_here(_host(server))

    def versions(self) -> Mapping[str, str]:
        server = {"qdrant": str(self._client.info().version)} if self._server else {}
        return {
            "qdrant-client": version("qdrant-client"),
            **server,
            "distance": DISTANCE,
            **self._embedder.versions,
        }

    def close(self) -> None:
        self._client.close()
        atexit.unregister(self._client.close)
        if self._directory:
            self._directory.close()

    def _box(self, namespace: str) -> Box | None:
        exists = self._client.collection_exists(namespace)
        return _Collection(self._qdrant.models, self._client, namespace) if exists else None

    def _make(self, namespace: str) -> Box:
        models = self._qdrant.models
        vectors = models.VectorParams(size=self._embedder.dimensions, distance=models.Distance(DISTANCE))
        self._client.create_collection(namespace, vectors_config=vectors, metadata={MARK: self._mark})
        if self._server:  # local mode has no payload indexes, and warns
            tenant = models.KeywordIndexParams(type="keyword", is_tenant=True)
            self._client.create_payload_index(namespace, USER, tenant)
            for field in (SESSION, DOMAIN):
                self._client.create_payload_index(namespace, field, "keyword")
        return _Collection(models, self._client, namespace)

    def _drop(self, namespace: str) -> None:
        self._client.delete_collection(namespace)

    def _is_permanent(self, error: Exception) -> bool:
        status = getattr(error, "status_code", None)
        if status is not None:
            return 400 <= status < 500 and status not in PASSING_STATUS
        return isinstance(error, ValueError)


class _Collection:
    def __init__(self, models: Any, client: Any, name: str) -> None:
        self._models, self._client, self._name = models, client, name
        self.mark = (client.get_collection(name).config.metadata or {}).get(MARK)

    def strangers(self) -> int:
        planted = self._models.PayloadField(key=f"metadata.{ID_KEY}")
        return self._counted(self._models.Filter(must=[self._models.IsEmptyCondition(is_empty=planted)]))

    def put(self, rows: Sequence[Row]) -> None:
        points = [
            self._models.PointStruct(
                id=row.key, vector=row.vector, payload={"text": row.text, "metadata": row.metadata}
            )
            for row in rows
        ]
        self._client.upload_points(self._name, points, wait=True)

    def holds(self, key: str) -> bool:
        return bool(self._client.retrieve(self._name, ids=[key], with_payload=False))

    def search(self, question: Question) -> list[Hit]:
        scope = question.scope
        asked = [self._is(USER, scope.user)]
        asked += [self._is(SESSION, scope.session)] if scope.session is not None else []
        if scope.domains:
            among = self._models.MatchAny(any=list(scope.domains))
            asked.append(self._models.FieldCondition(key=DOMAIN, match=among))
        found = self._client.query_points(
            self._name,
            query=question.vector,
            query_filter=self._models.Filter(must=asked),
            limit=question.k,
            with_payload=True,
        )
        return [_hit(point) for point in found.points]

    def edit(self, key: str, text: str, vector: list[float]) -> None:
        self._client.update_vectors(self._name, [self._models.PointVectors(id=key, vector=vector)])
        self._client.set_payload(self._name, payload={"text": text}, points=[key])

    def delete(self, keys: Sequence[str]) -> None:
        self._client.delete(self._name, points_selector=list(keys))

    def delete_user(self, user: str) -> None:
        of_user = self._models.Filter(must=[self._is(USER, user)])
        self._client.delete(self._name, points_selector=self._models.FilterSelector(filter=of_user))

    def count(self) -> Mapping[str, int]:
        return {"memories": self._counted(None)}

    def _counted(self, filter: Any) -> int:
        number: int = self._client.count(self._name, count_filter=filter, exact=True).count
        return number

    def _is(self, field: str, value: str) -> Any:
        return self._models.FieldCondition(key=field, match=self._models.MatchValue(value=value))


def _hit(point: Any) -> Hit:
    """Under the planted id, or the vendor's own where memtrend did not plant it."""
    payload = point.payload or {}
    known = dict(payload.get("metadata") or {})
    return Hit(known.pop(ID_KEY, str(point.id)), payload.get("text", ""), point.score, known)


def _host(server: Mapping[str, Any]) -> str:
    url = str(server.get("url") or "")
    return urlsplit(url if "//" in url else f"//{url}").hostname or str(server.get("host") or "")


def _qdrant_client() -> Any:
    try:
        import qdrant_client
    except ImportError as error:
        raise missing_package(PACKAGE) from error
    return qdrant_client
