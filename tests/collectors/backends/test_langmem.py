"""langmem's tools: their own ids, no metadata, and namespaces alone to tell anything apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from collectors.backend import Backend, BackendConfig, BackendError, Isolation, open_backend
from collectors.backends.langmem import LangMem
from collectors.suite import Memory, Scope
from tests.collectors.backends.boxes import ADAPTER, answering, run_beside

ANN = Scope("memtrend-test-1", "ann")
TEA = "Who drinks tea?"
ISOLATION = Isolation("langmem==0.0.30")
TRACED = """
from collectors.backends.langmem import LangMem
backend = LangMem(BackendConfig("ours", "langmem"))
backend.remember(scope, [Memory("m-tea", "Ann drinks tea.")])
print(len(backend.recall(scope, "Who drinks tea?", 1).hits))
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
"""


class TestOptions:
    def test_names_the_package_that_is_missing(self) -> None:
        """Without an environment of its own there is no SDK, and the line to add is in the message."""
        with pytest.raises(BackendError, match=r"say package = 'langmem==0\.0\.30'") as raised:
            LangMem(BackendConfig("ours", "langmem"))
        assert raised.value.permanent

    def test_what_has_no_effect_is_refused(self, tmp_path: Path) -> None:
        """Its store is in memory, and takes neither options nor a directory."""
        with pytest.raises(BackendError, match="takes no store"):
            LangMem(BackendConfig("ours", "langmem", {"store": "sqlite"}))
        with pytest.raises(BackendError, match="keeps nothing in a directory"):
            LangMem(BackendConfig("ours", "langmem", directory=tmp_path))


@pytest.mark.backends
def test_no_trace_of_a_tool_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangSmith gets nothing, though the environment asks for traces by every name that it knows."""
    with answering(202) as (url, asked):
        for vendor in ("LANGSMITH", "LANGCHAIN"):
            told = {"TRACING_V2": "true", "TRACING": "true", "ENDPOINT": url, "API_KEY": "key"}
            for name, value in told.items():
                monkeypatch.setenv(f"{vendor}_{name}", value)
        assert run_beside(ISOLATION, ADAPTER + TRACED) == "1\n"
    assert asked == []


@pytest.fixture(scope="module")
def opened() -> Iterator[Backend]:
    config = BackendConfig("ours", "langmem", isolation=ISOLATION)
    with closing(open_backend(config)) as backend:
        yield backend


@pytest.fixture
def tools(opened: Backend) -> Backend:
    """The tools over a store where ANN's namespace is empty."""
    opened.reset(ANN)
    return opened


def ids(backend: Backend, scope: Scope, query: str = TEA, k: int = 10) -> list[str]:
    return [hit.id for hit in backend.recall(scope, query, k).hits]


@pytest.mark.backends
class TestTools:
    def test_declares_what_the_tools_can_do(self, tools: Backend) -> None:
        """They change, delete and list; what was said beside a text they do not take."""
        declared = {"amend", "forget", "forget_user", "count", "ids", "deterministic"}
        assert tools.capabilities == declared

    def test_the_ids_are_read_from_what_the_tool_says(self, tools: Backend) -> None:
        """A memory comes back under its planted id and with the store's score, and with no metadata."""
        tools.remember(ANN, [Memory("m-tea", "Ann drinks tea."), Memory("m-row", "Ann rows on Sundays.")])
        first, second = tools.recall(ANN, TEA, 10).hits
        assert (first.id, first.text, dict(first.metadata)) == ("m-tea", "Ann drinks tea.", {})
        assert first.score is not None
        assert second.score is not None
        assert first.score > second.score

    def test_an_update_keeps_id_and_place(self, tools: Backend) -> None:
        """What the tool updates is found by its new text, under the old id, in the same session."""
        monday = replace(ANN, session="monday")
        tools.remember(monday, [Memory("m-tea", "Ann drinks tea.")])
        tools.amend(ANN, "m-tea", "Ann drinks coffee.")
        (hit,) = tools.recall(monday, "coffee", 10).hits
        assert (hit.id, hit.text) == ("m-tea", "Ann drinks coffee.")
        assert tools.count(ANN) == {"memories": 1}

    def test_an_unknown_id_is_not_updated_into_being(self, tools: Backend) -> None:
        """The tool would make a memory of it, and say it had updated one."""
        with pytest.raises(BackendError, match="no memory 'm-none'") as raised:
            tools.amend(ANN, "m-none", "Ann drinks coffee.")
        assert raised.value.permanent
        assert tools.count(ANN) == {"memories": 0}

    def test_domains_and_sessions_are_namespaces(self, tools: Backend) -> None:
        """Each is asked alone or with the other; without either all of the user's is."""
        for domain in (None, "home", "work"):
            for session in (None, "1", "10"):
                memory = Memory(f"{domain}-{session}", "Ann drinks tea.", domain=domain, session=session)
                tools.remember(ANN, [memory])
        assert len(ids(tools, ANN)) == 9
        assert set(ids(tools, replace(ANN, domains=("home",)))) == {"home-None", "home-1", "home-10"}
        assert set(ids(tools, replace(ANN, session="1"))) == {"None-1", "home-1", "work-1"}
        both = replace(ANN, domains=("home", "work"), session="10")
        assert set(ids(tools, both)) == {"home-10", "work-10"}
        assert len(ids(tools, both, k=1)) == 1

    @pytest.mark.parametrize("name", ["*", "{user}", "{", "a.b", "anna", "an", ""])
    def test_users_alike_are_apart(self, tools: Backend, name: str) -> None:
        """No name is a pattern, a placeholder of a template, or the beginning of another."""
        mine = replace(ANN, user=name, session=name)
        tools.remember(replace(ANN, session="1"), [Memory("m-tea", "Ann drinks tea.")])
        assert ids(tools, mine) == []
        tools.remember(mine, [Memory("m-mine", "Somebody drinks tea.")])
        assert (ids(tools, mine), ids(tools, ANN)) == (["m-mine"], ["m-tea"])
        tools.forget_user(mine)
        assert (ids(tools, mine), ids(tools, ANN)) == ([], ["m-tea"])

    def test_listings_are_not_cut(self, tools: Backend) -> None:
        """The tool's default of ten is neither the limit of an answer nor of a count."""
        tools.remember(ANN, [Memory(f"m-{n}", f"Ann drinks tea number {n}.") for n in range(25)])
        assert len(ids(tools, ANN, k=20)) == 20
        assert tools.count(ANN) == {"memories": 25}

    def test_says_what_decides_its_answers(self, tools: Backend) -> None:
        """Release, store and what is embedded: the whole value, which is the store's default."""
        versions = tools.versions()
        assert (versions["langmem"], versions["langgraph"]) == ("0.0.30", "1.2.24")
        assert (versions["store"], versions["embedded"]) == ("memory", "$")
