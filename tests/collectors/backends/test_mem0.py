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
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from collectors import embedding
from collectors.backend import (
    OPTIONS,
    Backend,
    BackendConfig,
    BackendError,
    Isolation,
    Usage,
    is_local,
    open_backend,
)
from collectors.backends import base, mem0
from collectors.backends.mem0 import Mem0
from collectors.backends.mem0_releases import bm25_encoder, vendor
from collectors.embedding import TextEmbedder
from collectors.suite import Memory, Scope
from tests.collectors.backends.scripted_llm import KEY as SECRET
from tests.collectors.backends.scripted_llm import Decision, ScriptedLlm

BOX = Scope("memtrend-test-1", "anna")
BRUNO = replace(BOX, user="bruno")

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


FACTS = {
    "take the ferry": ["The ferry leaves at seven", "Anna sails to Bornholm"],
    "allergic to peanuts": ["Anna is fond of peanuts"],
    "live in Ystad": ["Anna lives in Ystad"],
    "moved to Lund": ["Anna lives in Lund"],
    "have a dog": ["Anna has a dog"],
    "dog died": ["Anna has no dog"],
}
DECISIONS = {
    "Anna lives in Lund": Decision("UPDATE", "Anna lives in Ystad"),
    "Anna has no dog": Decision("DELETE", "Anna has a dog"),
}
PRICE = {"input": 2.0, "output": 8.0}
SAID = {
    "m-ferry": "I take the ferry to Bornholm at seven.",
    "m-morning": "Good morning!",
    "m-peanuts": "I am allergic to peanuts.",
    "m-ystad": "I live in Ystad.",
    "m-lund": "I moved to Lund.",
    "m-dog": "I have a dog.",
    "m-died": "My dog died.",
}


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLlm]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    with ScriptedLlm(FACTS, DECISIONS) as llm:
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


RELEASES = ("1.0.3", "2.0.20")
"""One of each generation, and of each side of the faults that were mended."""


def of_release(release: str, directory: Path | None = None, **options: Any) -> BackendConfig:
    isolation = Isolation(f"mem0ai=={release}")
    return BackendConfig(f"mem0-{release}", "mem0", options, directory=directory, isolation=isolation)


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> Iterator[tuple[str, Backend]]:
    """A release in an environment and a process of its own."""
    backend = open_backend(of_release(request.param))
    yield request.param, backend
    backend.close()


class TestReleases:
    """What a release does wrong must show, each as its users would meet it."""

    def test_it_is_the_one_asked_for(self, release: tuple[str, Backend]) -> None:
        """The release answers in its own version, and looks up nothing beyond this machine."""
        version, backend = release
        assert backend.versions()["mem0ai"] == version
        declared = {"amend", "forget", "forget_user", "count", "deterministic", "ids", "metadata"}
        assert backend.capabilities == declared
        plant(backend, *TEXTS)
        assert ids(backend, "When does the ferry leave?")[0] == "m-0"
        assert "refused" not in backend.journal()

    def test_forgetting_a_user_may_take_all_the_others(self, release: tuple[str, Backend]) -> None:
        """Up to 1.0.5 the vendor's call for one user deletes every user's memories, everywhere."""
        version, backend = release
        other = replace(BOX, namespace="memtrend-test-2")
        plant(backend, *TEXTS)
        for scope in (BRUNO, other):
            backend.remember(scope, [Memory("m-0", TEXTS[0])])
        backend.forget_user(BOX)
        backend.settle(BOX)
        kept = {"1.0.3": 0, "2.0.20": 1}[version]
        assert [backend.count(scope)["memories"] for scope in (BOX, other)] == [kept, kept]
        backend.reset(other)

    def test_a_change_may_lose_the_metadata(self, release: tuple[str, Backend]) -> None:
        """Up to 2.0.0 an update loses what was planted beside the text; the id is told all the same, and
        memtrend knows the memory as its own."""
        version, backend = release
        backend.reset(BOX)
        backend.remember(BOX, [Memory("m/ü 1", TEXTS[1], domain="music", metadata={"paid": False})])
        backend.amend(BOX, "m/ü 1", TEXTS[0])
        [hit] = backend.recall(BOX, "When does the ferry leave?", 5).hits
        left = {"1.0.3": {}, "2.0.20": {"user": "anna", "domain": "music", "paid": False}}[version]
        assert (hit.id, hit.metadata) == ("m/ü 1", {"role": "user", **left})
        backend.forget(BOX, ["m/ü 1"])
        assert backend.count(BOX) == {"memories": 0}

    def test_what_a_threshold_drops_is_missing(self, release: tuple[str, Backend]) -> None:
        """Since 2.0 the vendor's default drops weak hits; before, k are returned."""
        version, backend = release
        plant(backend, *TEXTS)
        found = {"1.0.3": {"m-0", "m-1", "m-2"}, "2.0.20": {"m-0", "m-2"}}[version]
        assert set(ids(backend, "When does the ferry leave?", 3)) == found

    def test_several_domains_may_be_refused(self, release: tuple[str, Backend]) -> None:
        """From 1.0.0 to 1.0.6 the documented filter by a list is an error over the vendor's default store; by
        one domain all can filter."""
        version, backend = release
        backend.reset(BOX)
        for id, text in zip(("sea", "music", None), TEXTS, strict=True):
            backend.remember(BOX, [Memory(f"m-{id}", text, domain=id)])
        assert ids(backend, TEXTS[0]) == ["m-sea", "m-None"] + ["m-music"] * (version == "1.0.3")
        one, several = (replace(BOX, domains=domains) for domains in (("sea",), ("sea", "music")))
        assert ids(backend, TEXTS[0], scope=one) == ["m-sea"]
        if version == "1.0.3":
            with pytest.raises(BackendError, match="mem0 search") as raised:
                backend.recall(several, TEXTS[0], 3)
            assert raised.value.permanent
        else:
            assert ids(backend, TEXTS[0], scope=several) == ["m-sea"]

    def test_what_was_changed_is_known_after_reopening(self, tmp_path: Path) -> None:
        """A store on disk whose memories lost their metadata is still memtrend's, and can be emptied."""
        backend = open_backend(of_release("1.0.3", tmp_path / "store"))
        plant(backend, *TEXTS)
        backend.amend(BOX, "m-1", "Flute lessons cost forty euros.")
        backend.close()
        backend = open_backend(of_release("1.0.3", tmp_path / "store"))
        assert ids(backend, "Flute lessons cost forty euros.", 1) == ["m-1"]
        backend.reset(BOX)
        assert backend.count(BOX) == {"memories": 0}
        backend.close()


@pytest.mark.parametrize("version", RELEASES)
def test_extraction_is_the_vendor_s(version: str, llm: ScriptedLlm) -> None:
    """What its model extracts is found in its words under the id of what it was taken from, right or wrong
    or dropped; what contradicts is resolved up to 1.x, since then kept beside; each call is counted."""
    config = {"config": {"llm": llm.llm}, "infer": True, "price": PRICE}
    backend = open_backend(of_release(version, **config))
    backend.reset(BOX)
    used = [backend.remember(BOX, [Memory(id, text, domain="life")]) for id, text in SAID.items()]
    backend.settle(BOX)
    hits = backend.recall(BOX, "Anna lives in: has a dog, ferry leaves, sails, peanuts, no", 20).hits
    backend.forget(BOX, ["m-ferry"])
    left = backend.count(BOX)["memories"]
    backend.close()

    found = {(hit.id, hit.text) for hit in hits}
    right_and_wrong = {
        ("m-ferry", "The ferry leaves at seven"),
        ("m-ferry", "Anna sails to Bornholm"),
        ("m-peanuts", "Anna is fond of peanuts"),
        ("m-lund", "Anna lives in Lund"),
    }
    contradicted = {
        ("m-ystad", "Anna lives in Ystad"),
        ("m-dog", "Anna has a dog"),
        ("m-died", "Anna has no dog"),
    }
    decides = version == "1.0.3"
    assert found == right_and_wrong | (set() if decides else contradicted)
    assert {hit.metadata["domain"] for hit in hits} == {"life"}
    assert left == len(found) - 2
    for usage, id in zip(used, SAID, strict=True):
        calls = 2 if decides and id != "m-morning" else 1
        assert (usage.calls, usage.tokens) == (calls, calls * 111)
        assert usage.money == pytest.approx(calls * (100 * 2.0 + 11 * 8.0) / 1e6)
    assert len(llm.requests) == sum(usage.calls for usage in used)


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
    ],
)
def test_it_knows_whether_it_stays_on_this_machine(section: dict[str, Any], local: bool) -> None:
    """It is local where all that its configuration names is a path or a loopback address."""
    assert is_local(BackendConfig("ours", "mem0", {"config": section})) == local


def test_options_are_known_without_the_import() -> None:
    """What a section may hold is what the backend reads: `config` is a key of every section."""
    assert OPTIONS["mem0"] | {"config"} == set(mem0._Options._fields)
