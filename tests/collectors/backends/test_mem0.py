"""mem0: the vendor's settings pass through, its pitfalls do not. Nothing here leaves the machine."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from collectors import embedding
from collectors.backend import OPTIONS, Backend, BackendConfig, BackendError, Usage, is_local, open_backend
from collectors.backends import base, mem0
from collectors.backends.mem0 import Mem0
from collectors.backends.mem0_releases import bm25_encoder, vendor
from collectors.embedding import TextEmbedder
from collectors.suite import Memory, Scope
from tests.collectors.backends.boxes import answering
from tests.collectors.backends.scripted_llm import KEY as SECRET
from tests.collectors.backends.scripted_llm import ScriptedLlm, speaking

BOX = Scope("memtrend-test-1", "anna")
QDRANT = {
    "/collections": '{"result": {"collections": []}}',
    "/collections/memtrend": '{"result": true}',
    "/collections/memtrend/index?wait=true": '{"result": {"operation_id": 0, "status": "completed"}}',
}
"""What a Qdrant server says to whoever makes a collection."""

if find_spec("mem0") is None:
    pytest.skip("make install EXTRAS=mem0", allow_module_level=True)


@pytest.fixture
def open_mem0(tmp_path: Path) -> Iterator[Callable[..., Mem0]]:
    """Opens a mem0 with these options, in a directory that later calls share, and closes it."""
    opened: list[Mem0] = []

    def open(
        directory: Path | None = tmp_path / "store", embedder: str = "wordllama", **options: Any
    ) -> Mem0:
        opened.append(Mem0(BackendConfig("ours", "mem0", options, embedder, directory)))
        return opened[-1]

    yield open
    for backend in opened:
        backend.close()


def plant(backend: Backend, *texts: str) -> None:
    backend.reset(BOX)
    backend.remember(BOX, [Memory(f"m-{n}", text) for n, text in enumerate(texts)])
    backend.settle(BOX)


def ids(backend: Backend, query: str, k: int = 10, scope: Scope = BOX) -> list[str]:
    return [hit.id for hit in backend.recall(scope, query, k).hits]


TEXTS = (
    "The ferry to Bornholm leaves at seven.",
    "Violin lessons cost thirty euros.",
    "Ferries do not sail in storms.",
)


class TestOptions:
    def test_the_vendor_s_threshold_is_the_default(self, open_mem0: Callable[..., Mem0]) -> None:
        """Fewer than k hits is what a user of mem0 gets; `search` takes its keywords as they are."""
        backend = open_mem0()
        plant(backend, *TEXTS)
        assert ids(backend, "When does the ferry leave?") == ["m-0", "m-2"]
        backend.close()
        assert ids(open_mem0(search={"threshold": 0.5}), "When does the ferry leave?") == ["m-0"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"threshold": 0.5}, "unknown option 'threshold'; known: config, infer, search, price"),
            ({"search": {"top_k": 3, "filters": {}}}, "search.filters is memtrend's to set; search.top_k is"),
            ({"search": {"limit": 3, "run_id": "x"}}, "search.limit is memtrend's to set; search.run_id is"),
            ({"price": {"inptu": 2.0}}, "price is input and output, USD .* tokens, not inptu = 2.0"),
            ({"price": {"input": "2.0"}}, "not input = '2.0'"),
            ({"infer": True}, "infer needs config.llm"),
            (
                {"config": {"vector_store": {"provider": "shoebox"}}},
                "Unsupported vector store provider: shoebox",
            ),
            ({"config": {"vector_store": {"config": {"api_kye": SECRET}}}}, "api_kye"),
        ],
    )
    def test_wrong_ones_are_told(
        self,
        open_mem0: Callable[..., Mem0],
        options: dict[str, Any],
        said: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """A fault in the configuration is a permanent error that names it; no value is shown or logged."""
        with pytest.raises(BackendError, match=said) as raised:
            open_mem0(**options)
        assert raised.value.permanent
        assert SECRET not in str(raised.value) + caplog.text

    def test_a_faulty_one_leaves_no_directory(
        self, open_mem0: Callable[..., Mem0], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A store in memory that could not be opened has nothing on disk afterwards either."""
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with pytest.raises(BackendError, match="shoebox"):
            open_mem0(directory=None, config={"vector_store": {"provider": "shoebox"}})
        gc.collect()
        assert list(tmp_path.iterdir()) == []

    def test_a_faulty_search_keyword_is_told(self, open_mem0: Callable[..., Mem0]) -> None:
        """What the vendor refuses is permanent: asking again changes nothing."""
        backend = open_mem0(search={"threshold": 7})
        plant(backend, *TEXTS)
        with pytest.raises(BackendError, match="mem0 search: Invalid threshold: 7") as raised:
            ids(backend, "ferry")
        assert raised.value.permanent

    def test_secrets_reach_the_vendor_alone(self, open_mem0: Callable[..., Mem0]) -> None:
        """A secret is revealed to mem0, left hidden in what was given, and in no version."""
        llm = {"provider": "openai", "config": {"model": "tiny", "api_key": SecretStr(SECRET)}}
        config = {"llm": llm, "embedder": {"provider": "openai", "config": {"api_key": SecretStr(SECRET)}}}
        backend = open_mem0(config=config, infer=True)
        assert backend._memory.llm.client.api_key == SECRET
        assert isinstance(llm["config"]["api_key"], SecretStr)  # type: ignore[index]
        assert SECRET not in json.dumps(dict(backend.versions()))

    def test_an_embedder_of_its_own_stays(self, open_mem0: Callable[..., Mem0]) -> None:
        """Where the configuration names an embedder it is used, and named among the versions."""
        named = {"provider": "openai", "config": {"model": "tiny", "api_key": "k", "embedding_dims": 7}}
        backend = open_mem0(config={"embedder": named})
        assert type(backend._memory.embedding_model).__module__ == "mem0.embeddings.openai"
        assert backend._memory.vector_store.embedding_model_dims == 7
        assert backend.versions()["embedder.model"] == "tiny"
        assert "deterministic" not in backend.capabilities

    def test_a_vector_store_of_its_own_stays(self, open_mem0: Callable[..., Mem0], tmp_path: Path) -> None:
        """A store that the configuration names is used as it is, and no user in it is wiped."""
        store = {"path": str(tmp_path / "own"), "collection_name": "production", "embedding_model_dims": 256}
        backend = open_mem0(config={"vector_store": {"provider": "qdrant", "config": store}})
        plant(backend, *TEXTS)
        assert (tmp_path / "own" / "collection" / "production").is_dir()
        assert backend.capabilities == {"amend", "forget", "count", "durable", "ids", "metadata"}
        with pytest.raises(BackendError, match="does not declare 'forget_user'"):
            backend.forget_user(BOX)

    def test_a_graph_of_its_own_is_wiped_of_no_user(
        self, open_mem0: Callable[..., Mem0], tmp_path: Path
    ) -> None:
        """A graph that memtrend did not make may hold the same user's own, and some forget everybody's."""
        graph = {"provider": "kuzu", "config": {"db": str(tmp_path / "graph")}}
        backend = open_mem0(config={"graph_store": graph})
        assert backend.capabilities == {"amend", "forget", "count", "durable", "ids", "metadata"}

    def test_a_server_tells_its_version(
        self, open_mem0: Callable[..., Mem0], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Over a Qdrant server that one's version decides, too, and is told beside the client's."""
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        near = version("qdrant-client").rpartition(".")[0] + ".77"  # the client warns of others
        title = '{"title": "qdrant - vector search engine", "version": "%s"}'
        with answering(200, {**QDRANT, "/": title % near}) as (url, _):
            store = {"url": url, "collection_name": "memtrend", "embedding_model_dims": 256}
            backend = open_mem0(config={"vector_store": {"provider": "qdrant", "config": store}})
            assert backend.versions()["qdrant"] == near
        assert "qdrant" not in open_mem0().versions()


class TestStore:
    def test_what_memtrend_did_not_plant_is_left_alone(self, open_mem0: Callable[..., Mem0]) -> None:
        """A namespace with somebody else's memories is refused, and keeps them."""
        backend = open_mem0()
        vendor = backend._memory
        vendor.add("A customer's own memory.", user_id="anna", agent_id=BOX.namespace, infer=False)
        with pytest.raises(BackendError, match="1 memories in it are not memtrend's") as raised:
            backend.reset(BOX)
        assert raised.value.permanent
        assert backend.count(BOX) == {"memories": 1}

    def test_the_same_user_outside_of_the_namespace_is_untouched(
        self, open_mem0: Callable[..., Mem0]
    ) -> None:
        """Reset, forget and forget_user end at the namespace."""
        backend = open_mem0()
        vendor = backend._memory
        vendor.add("A customer's own memory.", user_id="anna", infer=False)
        plant(backend, *TEXTS)
        backend.forget(BOX, ["m-0"])
        backend.forget_user(BOX)
        backend.reset(BOX)
        assert len(vendor.get_all(filters={"user_id": "anna"})["results"]) == 1

    def test_more_than_the_vendor_lists_by_default(self, open_mem0: Callable[..., Mem0]) -> None:
        """Counting and emptying see all rows, not the first twenty."""
        backend = open_mem0()
        plant(backend, *(f"Boat number {n}" for n in range(65)))
        assert backend.count(BOX) == {"memories": 65}
        backend.reset(BOX)
        assert backend.count(BOX) == {"memories": 0}

    def test_a_handle_left_behind_gives_way(self, open_mem0: Callable[..., Mem0]) -> None:
        """After a call that hung the store is opened anew, though the old handle still held its lock."""
        plant(open_mem0(), *TEXTS)
        assert ids(open_mem0(), "When does the ferry leave?") == ["m-0", "m-2"]

    def test_vectors_of_two_embedders_do_not_meet(
        self, open_mem0: Callable[..., Mem0], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With another embedder the same directory is an empty store, and the old one is still there."""

        class Other(TextEmbedder):
            name, dimensions, deterministic, fingerprint = "other", 3, True, {"model": "other"}

            def vectors(self, texts: Sequence[str]) -> np.ndarray:
                return np.ones((len(texts), 3))

        monkeypatch.setattr(embedding, "_opened", {})
        monkeypatch.setitem(embedding.LOCAL, "other", Other)
        plant(open_mem0(), *TEXTS)
        other = open_mem0(embedder="other")
        assert ids(other, "ferry") == []
        plant(other, "Anything")
        assert ids(other, "ferry") == ["m-0"]
        assert len(ids(open_mem0(), "ferry")) == 2

    def test_what_is_never_listed_does_not_settle(
        self, open_mem0: Callable[..., Mem0], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A store that has not taken in the last write after all the waiting says so."""
        backend = open_mem0()
        backend.reset(BOX)
        backend.remember(BOX, [Memory("m-0", "text")])
        rows: list[list[Any]] = [[], [], [{"id": backend._last[BOX.namespace]}]]
        monkeypatch.setattr(backend, "_rows", lambda entities: rows.pop(0))
        backend.settle(BOX)
        assert rows == []
        backend.remember(BOX, [Memory("m-1", "text")])
        monkeypatch.setattr(backend, "_rows", lambda entities: [])
        monkeypatch.setattr(
            mem0, "wait_until", lambda found, what: base.wait_until(found, what, timeout_s=0.1)
        )
        for _ in range(2):
            with pytest.raises(BackendError, match="written last is not to be found") as late:
                backend.settle(BOX)
            assert not late.value.permanent

    def test_the_keyword_half_never_asks_the_network(
        self, open_mem0: Callable[..., Mem0], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With fastembed and its model here keyword search is on; without either it is off, at once."""
        asked: list[dict[str, Any]] = []

        class Sparse:
            def __init__(self, name: str, **keywords: Any) -> None:
                asked.append({"name": name, **keywords})

            def embed(self, texts: list[str]) -> Any:
                return [SimpleNamespace(indices=np.array([1]), values=np.array([1.0])) for _ in texts]

        bm25_encoder.cache_clear()
        monkeypatch.setitem(sys.modules, "fastembed", SimpleNamespace(SparseTextEmbedding=Sparse))
        backend = open_mem0()
        plant(backend, *TEXTS)
        assert backend.versions()["keyword_search"] == "on"
        assert asked == [{"name": "Qdrant/bm25", "local_files_only": True}]
        backend.close()

        def absent(name: str, **keywords: Any) -> None:
            raise ValueError("no such model on this machine")

        bm25_encoder.cache_clear()
        monkeypatch.setitem(sys.modules, "fastembed", SimpleNamespace(SparseTextEmbedding=absent))
        assert open_mem0().versions()["keyword_search"] == "off"
        bm25_encoder.cache_clear()


def test_missing_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error says how to get it, here or in an environment of its own."""
    monkeypatch.setitem(sys.modules, "mem0", None)
    monkeypatch.setattr(mem0, "vendor", vendor.__wrapped__)
    advice = 'mem0 is not installed: make install EXTRAS=mem0, or give the backend package = "mem0ai==2.2.1"'
    with pytest.raises(BackendError, match=advice) as raised:
        open_backend(BackendConfig("ours", "mem0"))
    assert raised.value.permanent


ALONE = """
import socket, sys
def refused(*asked, **_):
    print("LOOKED UP", asked[0])
    raise OSError("no network in this test")
socket.getaddrinfo = refused
from collectors.backend import BackendConfig, open_backend
from collectors.suite import Memory, Scope
backend = open_backend(BackendConfig("ours", "mem0"))
scope = Scope("memtrend-test-1")
backend.reset(scope)
backend.remember(scope, [Memory(f"m-{n}", f"Yesterday boat {n} left.") for n in range(3)])
backend.settle(scope)
backend.amend(scope, "m-0", "Boat 0 came back today.")
assert backend.recall(scope, "Which boat left last week?", 60).hits
backend.forget(scope, ["m-1"])
if sys.argv[1] == "close":
    backend.close()
print("DONE")
"""


@pytest.mark.parametrize("ending", ["close", "leave"])
def test_it_keeps_to_itself(ending: str, tmp_path: Path) -> None:
    """It looks up no host, writes neither into the home directory nor on stdout, leaves no file behind, and
    ends without complaint, closed or not."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary)}
    environment.pop("MEM0_DIR", None)
    code = [sys.executable, "-c", ALONE, ending]
    said = subprocess.run(code, capture_output=True, text=True, env=environment, check=False)
    assert said.stdout == "DONE\n", said.stderr
    assert said.returncode == 0
    assert said.stderr == ""
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLlm]:
    with speaking(monkeypatch) as llm:
        yield llm


class TestInfer:
    def opened(self, open_mem0: Callable[..., Mem0], llm: ScriptedLlm, **options: Any) -> Mem0:
        backend = open_mem0(config={"llm": llm.llm}, infer=True, **options)
        backend.reset(BOX)
        return backend

    def test_nothing_of_it_can_be_amended(self, open_mem0: Callable[..., Mem0], llm: ScriptedLlm) -> None:
        """Several facts may stand for one memory, so amending is not offered."""
        backend = self.opened(open_mem0, llm)
        assert backend.capabilities == {"forget", "forget_user", "count", "durable", "ids", "metadata"}
        with pytest.raises(BackendError, match="does not declare 'amend'"):
            backend.amend(BOX, "m-0", "text")

    def test_without_a_price_money_is_nothing(self, open_mem0: Callable[..., Mem0], llm: ScriptedLlm) -> None:
        """Calls and tokens are counted all the same, and remembering nothing costs nothing."""
        backend = self.opened(open_mem0, llm)
        assert backend.remember(BOX, [Memory(f"m-{n}", "Hello") for n in range(3)]) == Usage(3, 333)
        assert backend.remember(BOX, []) == Usage()
        assert len(llm.requests) == 3

    def test_what_was_forgotten_is_still_shown_to_the_model(
        self, open_mem0: Callable[..., Mem0], llm: ScriptedLlm
    ) -> None:
        """The vendor keeps a user's last messages and shows them to the model, forgotten or not; a namespace
        that was reset has none, and the others keep theirs."""

        def shown(scope: Scope) -> bool:
            backend.remember(scope, [Memory("m-1", "Good morning!")])
            return "ferry" in llm.requests[-1][1]["messages"][-1]["content"]

        backend = self.opened(open_mem0, llm)
        other = replace(BOX, namespace="memtrend-test-11")
        for scope in (BOX, other):
            backend.remember(scope, [Memory("m-0", "I take the ferry.")])
        backend.forget_user(BOX)
        assert shown(BOX)
        backend.reset(BOX)
        assert not shown(BOX)
        assert shown(other)

    def test_model_and_prompt_are_versions(self, open_mem0: Callable[..., Mem0], llm: ScriptedLlm) -> None:
        """A change of the extracting model, or of the vendor's prompt for it, shows in the fingerprint."""
        versions = self.opened(open_mem0, llm).versions()
        assert versions["llm.provider"] == "openai"
        assert versions["llm.model"] == "tiny"
        assert len(versions["extraction_prompt"]) == 16
        assert SECRET not in json.dumps(dict(versions))

    @pytest.mark.parametrize(("status", "permanent"), [(401, True), (400, True), (429, False), (503, False)])
    def test_a_model_that_refuses(
        self, open_mem0: Callable[..., Mem0], llm: ScriptedLlm, status: int, permanent: bool
    ) -> None:
        """A refused key is permanent; a busy server is left to the runner's retries."""
        backend = self.opened(open_mem0, llm)
        backend._memory.llm.client.max_retries = 0
        llm.status = status
        with pytest.raises(Exception, match="not today") as raised:
            backend.remember(BOX, [Memory("m-0", "I take the ferry.")])
        assert (isinstance(raised.value, BackendError) and raised.value.permanent) == permanent


def test_an_embedder_of_its_own_is_asked(open_mem0: Callable[..., Mem0], llm: ScriptedLlm) -> None:
    """Where the vendor's configuration names an embedder, its own client asks that one."""
    backend = open_mem0(config={"embedder": llm.embedder})
    plant(backend, *TEXTS)
    assert ids(backend, "Violin lessons cost", 1) == ["m-1"]
    asked = [text for path, body in llm.requests if path == "/v1/embeddings" for text in body["input"]]
    assert list(dict.fromkeys(asked)) == [*TEXTS, "Violin lessons cost"]


@pytest.mark.parametrize(
    ("section", "local"),
    [
        ({}, True),
        ({"vector_store": {"provider": "qdrant", "config": {"path": "/somewhere"}}}, True),
        ({"vector_store": {"provider": "qdrant", "config": {"host": "localhost", "port": 6333}}}, True),
        ({"vector_store": {"provider": "qdrant", "config": {"url": "https://qdrant.example"}}}, False),
        ({"llm": {"provider": "openai", "config": {"openai_base_url": "http://127.0.0.1:1/v1"}}}, True),
        ({"llm": {"provider": "ollama", "config": {"ollama_base_url": "http://gpu-box:11434"}}}, False),
        ({"embedder": {"provider": "openai", "config": {"api_key": "k"}}}, False),
        ({"vector_store": {"config": {"host": "127.0.0.2", "port": 6333}}}, True),
        ({"vector_store": {"config": {"path": "/x", "api_endpoint": "https://db.example"}}}, False),
        ({"vector_store": {"config": {"path": "s3://bucket/x"}}}, False),
        ({"vector_store": {"config": {"host": "localhost", "hosts": ["127.0.0.1", "db.example"]}}}, False),
        ({"vector_store": {"config": {"connection_string": "postgresql://u:p@localhost/x"}}}, True),
        ({"vector_store": {"config": {"connection_string": SecretStr("host=db.example")}}}, False),
        ({"llm": {"config": {"azure_kwargs": {"azure_endpoint": "https://x.example"}}}}, False),
        ({"llm": {"config": {"openai_base_url": "http://[::1]:1/v1", "proxies": "gate:3128"}}}, False),
    ],
)
def test_it_knows_whether_it_stays_on_this_machine(section: dict[str, Any], local: bool) -> None:
    """It is local where every place that its configuration names is on this machine, at any depth."""
    assert is_local(BackendConfig("ours", "mem0", {"config": section})) == local


def test_options_are_known_without_the_import() -> None:
    """What a section may hold is what the backend reads: `config` is a key of every section."""
    assert OPTIONS["mem0"] | {"config"} == set(mem0._Options._fields)
