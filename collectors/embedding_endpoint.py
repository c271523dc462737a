"""An embedder behind an OpenAI-compatible `/v1/embeddings`: Ollama, vLLM, OpenAI and their like."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import numpy as np
import stamina
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, SecretStr, ValidationError, field_validator

from collectors.backend import BackendError
from collectors.backends.base import PASSING_STATUS
from collectors.embedding import TextEmbedder


class Endpoint(BaseModel):
    """Where the server is and how to ask it. `timeout` is in seconds; a request carries up to `batch` texts
    and is tried up to `attempts` times."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: HttpUrl
    model: str = Field(min_length=1)
    key: SecretStr | None = None
    dimensions: int | None = Field(default=None, gt=0)
    batch: int = Field(default=64, gt=0)
    timeout: float = Field(default=30.0, gt=0)
    attempts: int = Field(default=4, gt=0)

    @field_validator("url")
    @classmethod
    def _without_credentials(cls, url: HttpUrl) -> HttpUrl:
        if url.username or url.password:
            raise ValueError("give the credentials as `key`: the URL is shown")
        return url


def parse(spec: Mapping[str, Any]) -> Endpoint:
    """Raises a permanent `BackendError` that names the keys at fault and never shows a value."""
    try:
        return Endpoint.model_validate(dict(spec))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        known = ", ".join(Endpoint.model_fields)
        raise BackendError(f"embedder: {faults} (keys known: {known})", permanent=True) from None


class EndpointEmbedder(TextEmbedder):
    """Asks once on opening: for the number of dimensions, and for the model that the server says it is."""

    deterministic = False

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._key = endpoint.key.get_secret_value() if endpoint.key else ""
        base = httpx.URL(str(endpoint.url))
        self._url = base.copy_with(path=base.path.rstrip("/") + "/embeddings")
        self._shown = str(self._url.copy_with(query=None))
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._retrying = stamina.RetryingCaller(attempts=endpoint.attempts, timeout=None).on(_may_pass)
        self._client = httpx.Client(headers=headers, timeout=endpoint.timeout)
        self.name = endpoint.model
        first, served = self._asked(["dimensions"])
        self.dimensions = first.shape[1]
        self.fingerprint = {"url": self._shown, "model": served}

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        size = self._endpoint.batch
        batches = [self._asked(texts[start : start + size])[0] for start in range(0, len(texts), size)]
        if any(batch.shape[1] != self.dimensions for batch in batches):
            raise self._error(f"vectors no longer have {self.dimensions} dimensions", permanent=True)
        return np.concatenate(batches)

    def _asked(self, texts: Sequence[str]) -> tuple[np.ndarray, str]:
        """Vectors (n, d), and the model that the server names. Retries only what may pass."""
        answer = self._retrying(self._posted, texts)
        try:
            return _vectors(answer, len(texts)), str(answer.get("model") or self._endpoint.model)
        except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
            fault = f"the answer is not that of an OpenAI-compatible server: {error!r}"
            raise self._error(fault, permanent=True) from error

    def _posted(self, texts: Sequence[str]) -> Any:
        body: dict[str, Any] = {"model": self._endpoint.model, "input": list(texts)}
        if self._endpoint.dimensions:
            body["dimensions"] = self._endpoint.dimensions
        try:
            response = self._client.post(self._url, json=body)
        except httpx.HTTPError as error:
            raise self._error(repr(error), permanent=not isinstance(error, httpx.TransportError)) from error
        if response.is_success:
            return _json(response)
        passing = response.status_code in PASSING_STATUS or response.is_server_error
        said = self._without_key(response.text)[:300]  # in this order, or half a key would stay
        raise self._error(f"HTTP {response.status_code}: {said}", permanent=not passing)

    def _error(self, fault: str, *, permanent: bool) -> BackendError:
        told = f"embedder {self.name} at {self._shown}: {self._without_key(fault)}"
        return BackendError(told, permanent=permanent)

    def _without_key(self, text: str) -> str:
        """Some servers repeat the key in their complaint about it."""
        return text.replace(self._key, "***") if self._key else text


def _may_pass(error: Exception) -> bool:
    return isinstance(error, BackendError) and not error.permanent


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None  # told apart from a right answer where its fields are read


def _vectors(answer: Any, wanted: int) -> np.ndarray:
    """(n, d) in the order asked, from lists of floats or base64 of little-endian float32."""
    entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
    if [entry["index"] for entry in entries] != list(range(wanted)):
        raise ValueError(f"{len(entries)} vectors for {wanted} texts")
    vectors = np.array([_floats(entry["embedding"]) for entry in entries], np.float32)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ValueError("vectors are not lists of finite numbers")
    return vectors


def _floats(embedding: Any) -> np.ndarray:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, np.float32)
