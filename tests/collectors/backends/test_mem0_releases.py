"""mem0, each release in an environment of its own: what it does wrong must show. All of it stays here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collectors.backend import Backend, BackendConfig, BackendError, Isolation, open_backend
from collectors.suite import Memory, Scope
from tests.collectors.backends.boxes import ADAPTER, run_beside
from tests.collectors.backends.scripted_llm import ScriptedLlm, speaking

BOX = Scope("memtrend-test-1", "anna")
BRUNO = replace(BOX, user="bruno")
TEXTS = (
    "The ferry to Bornholm leaves at seven.",
    "Violin lessons cost thirty euros.",
    "Ferries do not sail in storms.",
)
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


RELEASES = ("1.0.3", "2.0.20")
"""One of each generation, and of each side of the faults that were mended."""


def plant(backend: Backend, *texts: str) -> None:
    backend.reset(BOX)
    backend.remember(BOX, [Memory(f"m-{n}", text) for n, text in enumerate(texts)])
    backend.settle(BOX)


def ids(backend: Backend, query: str, k: int = 10, scope: Scope = BOX) -> list[str]:
    return [hit.id for hit in backend.recall(scope, query, k).hits]


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
        declared = {"amend", "forget", "forget_user", "count", "ids", "metadata"}
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


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLlm]:
    with speaking(monkeypatch) as llm:
        yield llm


EVERY_RELEASE = ("0.1.118", "1.0.0", "1.0.3", "1.0.6", "1.0.11", "2.0.0", "2.0.20", "2.2.1")


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, marks=[] if version in RELEASES else [pytest.mark.backends])
        for version in EVERY_RELEASE
    ],
)
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
    decides = version < "2"
    assert found == right_and_wrong | (set() if decides else contradicted)
    assert {hit.metadata["domain"] for hit in hits} == {"life"}
    assert left == len(found) - 2
    for usage, id in zip(used, SAID, strict=True):
        calls = 2 if decides and id != "m-morning" else 1
        assert (usage.calls, usage.tokens) == (calls, calls * 111)
        assert usage.money == pytest.approx(calls * (100 * 2.0 + 11 * 8.0) / 1e6)
    assert len(llm.requests) == sum(usage.calls for usage in used)


@pytest.mark.backends
def test_a_model_that_fails_may_pass_for_one_that_found_nothing(llm: ScriptedLlm) -> None:
    """2.0.0 says nothing of a refused key: the memory is missing, and that is all that shows."""
    backend = open_backend(of_release("2.0.0", config={"llm": llm.llm}, infer=True))
    backend.reset(BOX)
    llm.status = 401
    assert backend.remember(BOX, [Memory("m-ferry", SAID["m-ferry"])]).calls == 1
    assert backend.count(BOX) == {"memories": 0}
    llm.status = 200
    backend.remember(BOX, [Memory("m-ferry", SAID["m-ferry"])])
    assert backend.count(BOX) == {"memories": 2}
    backend.close()


def test_telemetry_leaves_nothing_running() -> None:
    """Up to 1.0.5 the vendor's switch leaves a thread for every call; here there is the import's."""
    used = """
import threading
from collectors.backends.mem0 import Mem0
backend = Mem0(BackendConfig("ours", "mem0"))
backend.remember(scope, [Memory("m-1", "Anna drinks tea.")])
backend.recall(scope, "Who drinks tea?", 1)
print([type(thread).__name__ for thread in threading.enumerate()].count("Consumer"))
backend.close()
"""
    assert run_beside(Isolation("mem0ai==1.0.3"), ADAPTER + used) == "1\n"
