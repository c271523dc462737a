"""langgraph's store: namespaces are searched by prefix, and what lies beside a prefix is somebody else's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collectors.backend import Backend, BackendConfig, BackendError, Hit, Isolation, open_backend
from collectors.backends import langgraph
from collectors.backends.langgraph import LangGraph, label
from collectors.suite import Memory, Scope
from tests.collectors.backends import test_contract
from tests.collectors.backends.conftest import CLOSING, Opened, lent
from tests.collectors.backends.systems import KEEPS
from tests.postgres import PASSWORD, Server, server

BOX = Scope("memtrend-test-1")
ANN = replace(BOX, user="ann")
RELEASE = "langgraph==1.2.24"
SQLITE = "langgraph-checkpoint-sqlite==3.1.2"
LEAKING = {"sqlite": "langgraph-checkpoint-sqlite==3.1.0", "postgres": "langgraph-checkpoint-postgres==3.1.0"}
"""The last releases whose search took all that begins with the user's name for the user's."""
LOADS_EXTENSIONS = hasattr(sqlite3.Connection, "enable_load_extension")
PYTHON = "" if LOADS_EXTENSIONS else "/usr/bin/python3"
"""One whose sqlite3 loads extensions."""

Open = Callable[..., Backend]
at_home = pytest.mark.parametrize("store", ["memory", "sqlite"])
anywhere = pytest.mark.parametrize(
    "store", ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.backends)]
)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def open_store(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a store of this kind, by default empty at BOX, and closes it."""
    with ExitStack() as closing_all:

        def open(
            store: str,
            *packages: str,
            directory: Path | None = None,
            embedder: str = "wordllama",
            emptied: bool = True,
            **options: Any,
        ) -> Backend:
            if store == "postgres":
                options.setdefault("url", request.getfixturevalue("postgres").url)
            isolation = Isolation(RELEASE, packages or (SQLITE,), PYTHON)
            config = BackendConfig(
                "ours", "langgraph", {"store": store, **options}, embedder, directory, isolation
            )
            backend = open_backend(config)
            closing_all.callback(backend.close)
            if emptied:
                backend.reset(BOX)
            return backend

        yield open


def plant(backend: Backend, scope: Scope, *texts: str, **said: Any) -> None:
    memories = [Memory(f"m-{n}", text, **said) for n, text in enumerate(texts)]
    backend.remember(scope, memories)
    backend.settle(scope)


def found(backend: Backend, scope: Scope, query: str = "Who drinks tea?", k: int = 10) -> tuple[Hit, ...]:
    return backend.recall(scope, query, k).hits


def texts(backend: Backend, scope: Scope, query: str = "Who drinks tea?", k: int = 10) -> set[str]:
    return {hit.text for hit in found(backend, scope, query, k)}


class TestPrefixes:
    ALIKE = ("an", "anna", "Ann", "ann.a", "ann/a", "a_n", "an%", "*", "%", "~", "ann~2Ea", "")
    """Users whose names a pattern, a prefix, a case or an escape could take for `ann` and for each other."""

    @anywhere
    def test_users_alike_are_apart(self, open_store: Open, store: str) -> None:
        """A name is a name, whatever it begins with and whatever it would mean in a pattern."""
        backend = open_store(store)
        users = [replace(BOX, user=user) for user in ("ann", *self.ALIKE)]
        for scope in users:
            plant(backend, scope, f"{scope.user} drinks tea.")
        assert [texts(backend, scope) for scope in users] == [
            {f"{scope.user} drinks tea."} for scope in users
        ]
        assert backend.count(BOX) == {"memories": len(users)}

    @anywhere
    def test_a_question_without_a_session_is_asked_of_the_user_s_prefix(
        self, open_store: Open, store: str
    ) -> None:
        """Sessions lie below their user: one is asked alone, and no session is all of them."""
        backend = open_store(store)
        for session in (None, "1", "10"):
            plant(backend, replace(ANN, session=session), f"Tea in session {session}.")
        assert texts(backend, replace(ANN, session="1")) == {"Tea in session 1."}
        assert texts(backend, ANN) == {"Tea in session None.", "Tea in session 1.", "Tea in session 10."}

    @pytest.mark.backends
    @pytest.mark.parametrize("store", sorted(LEAKING))
    def test_older_releases_leak(self, open_store: Open, store: str) -> None:
        """Up to 3.1.0 a search sees whoever's name begins alike: the adapter does not hide what was wrong."""
        backend = open_store(store, LEAKING[store])
        for user in ("ann", "anna", "bob"):
            plant(backend, replace(BOX, user=user), f"{user} drinks tea.")
        assert texts(backend, ANN) == {"ann drinks tea.", "anna drinks tea."}

    @pytest.mark.backends
    @pytest.mark.parametrize("store", sorted(LEAKING))
    def test_nothing_of_others_is_deleted_by_a_leak(self, open_store: Open, store: str) -> None:
        """What such a release lists of another namespace or user is left where it is."""
        backend = open_store(store, LEAKING[store])
        beside = Scope(f"{BOX.namespace}0", "anna")
        backend.reset(beside)
        for scope in (ANN, replace(BOX, user="anna"), beside):
            plant(backend, scope, "Somebody drinks tea.")
        backend.forget(ANN, ["m-0"])
        assert (backend.count(BOX), backend.count(beside)) == ({"memories": 1}, {"memories": 1})
        backend.reset(BOX)
        assert (backend.count(BOX), backend.count(beside)) == ({"memories": 0}, {"memories": 1})
        backend.reset(beside)

    @given(st.text(), st.text())
    @example(".", "~2E")
    @example("", "~")
    @example("~", "~7E")
    def test_labels_are_names_the_vendor_takes(self, one: str, other: str) -> None:
        """No label is empty or holds what the vendor refuses, and two names never share one."""
        assert label(one)
        assert not {".", "\0"} & set(label(one))
        assert (label(one) == label(other)) == (one == other)


class TestStores:
    @at_home
    def test_a_namespace_is_used_again(self, open_store: Open, store: str) -> None:
        """Emptied and planted anew, it holds the new memory, found by its own vector, and nothing old."""
        backend = open_store(store)
        plant(backend, ANN, "Ann drinks tea.", "Ann rows on Sundays.")
        backend.reset(BOX)
        assert (found(backend, ANN), backend.count(BOX)) == ((), {"memories": 0})
        plant(backend, ANN, "The cellar is flooded.")
        assert [hit.text for hit in found(backend, ANN)] == ["The cellar is flooded."]
        (hit,) = found(backend, ANN, "The cellar is flooded.", 1)
        (other,) = found(backend, ANN, "Ann drinks tea.", 1)
        assert (hit.score or 0.0) > (other.score or 0.0) + 0.2

    @at_home
    def test_listings_are_not_cut(self, open_store: Open, store: str) -> None:
        """The vendor's default of ten items is neither the limit of an answer nor of a count."""
        backend = open_store(store)
        plant(backend, ANN, *(f"Ann drinks tea number {n}." for n in range(25)))
        assert len(found(backend, ANN, k=20)) == 20
        assert backend.count(BOX) == {"memories": 25}
        backend.forget_user(ANN)
        assert backend.count(BOX) == {"memories": 0}

    @at_home
    def test_several_domains_are_one_answer(self, open_store: Open, store: str) -> None:
        """A filter takes one value: each domain is searched, and the k best of all come back, best first."""
        backend = open_store(store)
        for n, domain in enumerate(["kitchen", "garden", "office"]):
            backend.remember(ANN, [Memory(f"tea-{n}", f"Ann drinks tea in the {domain}.", domain=domain)])
            backend.remember(ANN, [Memory(f"pen-{n}", f"A pencil lies in the {domain}.", domain=domain)])
        hits = found(backend, replace(ANN, domains=("kitchen", "garden")), "Where does Ann drink tea?", 3)
        scores = [hit.score or 0.0 for hit in hits]
        assert {hit.id for hit in hits[:2]} == {"tea-0", "tea-1"}
        assert len(hits) == 3
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize(
        ("store", "index", "embedded", "same"),
        [
            ("memory", {}, "text", True),
            ("sqlite", {}, "$", False),
            ("sqlite", {"text_fields": ["text"]}, "text", True),
        ],
    )
    def test_says_what_is_embedded(
        self, open_store: Open, store: str, index: dict[str, Any], embedded: str, same: bool
    ) -> None:
        """SQLite's store takes no notice of the field to embed: what is said of a memory moves its score."""
        backend = open_store(store, index=index)
        plant(backend, ANN, "Ann drinks tea.")
        plant(backend, replace(BOX, user="bob"), "Ann drinks tea.", metadata={"source": "a letter of 1912"})
        (plain,), (told,) = found(backend, ANN), found(backend, replace(BOX, user="bob"))
        assert backend.versions()["embedded"] == embedded
        assert (plain.score == pytest.approx(told.score)) == same

    @at_home
    def test_a_blank_question_has_no_score(self, open_store: Open, store: str) -> None:
        """Nothing is like nothing: hits come without a score, or with none to speak of, and never NaN."""
        backend = open_store(store)
        plant(backend, ANN, "Ann drinks tea.")
        for blank in ("", "  "):
            (hit,) = found(backend, ANN, blank)
            assert hit.score in (None, 0.0)

    def test_refuses_what_it_did_not_plant(self, open_store: Open, tmp_path: Path) -> None:
        """A namespace that holds somebody else's items is left alone, all of it."""
        backend = open_store("sqlite", directory=tmp_path)
        plant(backend, ANN, "Ann drinks tea.")
        (path,) = tmp_path.glob("*.sqlite")
        with closing(sqlite3.connect(path)) as database, database:
            row = (f"{BOX.namespace}.bob", "k", json.dumps({"text": "Bob's own."}))
            database.execute("INSERT INTO store (prefix, key, value) VALUES (?, ?, ?)", row)
        with pytest.raises(BackendError, match="1 memories in it are not memtrend's") as raised:
            backend.reset(BOX)
        assert raised.value.permanent
        assert backend.count(BOX) == {"memories": 2}

    def test_embedders_do_not_meet_in_one_directory(self, open_store: Open, tmp_path: Path) -> None:
        """Another embedder finds an empty store beside the first one's, and the first one's stays."""
        plant(open_store("sqlite", directory=tmp_path), ANN, "Ann drinks tea.")
        other = open_store("sqlite", directory=tmp_path, embedder="minilm")
        assert other.count(BOX) == {"memories": 0}
        again = open_store("sqlite", directory=tmp_path, emptied=False)
        assert texts(again, ANN) == {"Ann drinks tea."}


class Behind:
    """A replica of the vendor's store, in which a write is found at the third look."""

    index_config: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self.looks = 0

    def search(self, place: tuple[str, ...], **asked: Any) -> list[Any]:
        return []

    def put(self, place: tuple[str, ...], key: str, value: dict[str, Any]) -> None:
        self.looks = 0

    def get(self, place: tuple[str, ...], key: str) -> object | None:
        self.looks += 1
        return object() if self.looks == 3 else None


def test_settling_waits_for_what_was_written_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks until the last memory is there, and not again once nothing is to be waited for."""
    store = Behind()
    monkeypatch.setitem(langgraph.STORES, "memory", lambda opening: (store, {}))
    backend = LangGraph(BackendConfig("ours", "langgraph"))
    backend.settle(BOX)
    assert store.looks == 0
    plant(backend, ANN, "Ann drinks tea.", "Ann rows on Sundays.")
    assert store.looks == 3


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "fault"),
        [
            ({"stor": "memory"}, "unknown option 'stor'; known: store, url, index"),
            ({"store": "redis"}, "unknown store 'redis'; known: memory, sqlite, postgres"),
            ({"store": "postgres"}, 'url belongs to store = "postgres"'),
            ({"url": f"postgresql://ann:{PASSWORD}@db/x"}, 'url belongs to store = "postgres"'),
            ({"index": {"dims": 3, "embed": "x"}}, "index.dims is memtrend's to set; index.embed"),
        ],
    )
    def test_faulty_options_are_named(self, options: dict[str, Any], fault: str) -> None:
        """What cannot be meant is refused before anything is imported, and no secret is repeated."""
        with pytest.raises(BackendError, match=fault) as raised:
            LangGraph(BackendConfig("ours", "langgraph", options))
        assert raised.value.permanent
        assert PASSWORD not in str(raised.value)

    @pytest.mark.parametrize("options", [{}, {"store": "postgres", "url": "postgresql://db/x"}])
    def test_a_directory_without_use_is_refused(self, options: dict[str, Any], tmp_path: Path) -> None:
        """Only SQLite keeps something in a directory."""
        with pytest.raises(BackendError, match="keeps nothing in a directory"):
            LangGraph(BackendConfig("ours", "langgraph", options, directory=tmp_path))

    def test_names_the_package_that_is_missing(self) -> None:
        """Without an environment of its own there is no SDK, and the line to add is in the message."""
        with pytest.raises(BackendError, match=r"say package = 'langgraph==1\.2\.24'") as raised:
            LangGraph(BackendConfig("ours", "langgraph"))
        assert raised.value.permanent

    def test_names_a_python_that_will_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """SQLite's store needs extensions, which not every Python's sqlite3 loads."""
        monkeypatch.setattr(langgraph, "sqlite3", SimpleNamespace(Connection=object))
        with pytest.raises(BackendError, match='python = "/usr/bin/python3"') as raised:
            LangGraph(BackendConfig("ours", "langgraph", {"store": "sqlite"}))
        assert raised.value.permanent

    @pytest.mark.parametrize(
        ("options", "local"),
        [
            ({}, True),
            ({"store": "sqlite"}, True),
            ({"store": "postgres"}, False),
            ({"store": "postgres", "url": "postgresql://ann:x@127.0.0.1:5432/x"}, True),
            ({"store": "postgres", "url": "postgresql:///x?host=/run/postgresql"}, True),
            ({"store": "postgres", "url": "host=/run/postgresql dbname=x"}, True),
            ({"store": "postgres", "url": "postgresql://ann:x@db.example/x"}, False),
            ({"store": "postgres", "url": "postgresql:///x?host=db.example"}, False),
        ],
    )
    def test_knows_what_stays_on_this_machine(self, options: dict[str, Any], local: bool) -> None:
        """A database is where its URL leads to, the other stores have no address."""
        assert LangGraph.is_local(BackendConfig("ours", "langgraph", options)) == local


@pytest.mark.backends
class TestPostgres:
    def test_keeps_what_was_planted(self, open_store: Open, postgres: Server) -> None:
        """Closed and opened again, the database has it, and says which server it is."""
        backend = open_store("postgres")
        plant(backend, ANN, "Ann drinks tea.", metadata={"source": "Bob"})
        again = open_store("postgres", emptied=False)
        assert again.capabilities == {"amend", "count", "durable", "forget", "ids", "metadata"}
        assert [(hit.id, hit.metadata["source"]) for hit in found(again, ANN)] == [("m-0", "Bob")]
        versions = again.versions()
        assert versions["postgresql"] == postgres.run("SHOW server_version")
        assert versions["pgvector"] == postgres.run(
            "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        )
        assert (versions["embedded"], versions["distance"]) == ("text", "cosine")

    def test_forgets_no_user_of_a_database(self, open_store: Open) -> None:
        """It may hold the same user's own memories: what memtrend did not make it does not clear."""
        with pytest.raises(BackendError, match="does not declare 'forget_user'"):
            open_store("postgres").forget_user(ANN)

    def test_refuses_what_it_did_not_plant(self, open_store: Open, postgres: Server) -> None:
        """An item of somebody else's in a namespace called like one of ours stops its reset."""
        backend = open_store("postgres")
        row = f"'{BOX.namespace}.bob', 'k', '{{}}'"
        postgres.run(f"INSERT INTO store (prefix, key, value) VALUES ({row})")
        with pytest.raises(BackendError, match="1 memories in it are not memtrend's"):
            backend.reset(BOX)
        assert backend.count(BOX) == {"memories": 1}
        postgres.run("DELETE FROM store")

    def test_a_lost_connection_is_made_anew(self, open_store: Open, postgres: Server) -> None:
        """The call that meets it fails, and may be made again; the next one is answered."""
        backend = open_store("postgres")
        plant(backend, ANN, "Ann drinks tea.")
        postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(BackendError, match="langgraph search") as raised:
            found(backend, ANN)
        assert not raised.value.permanent
        assert texts(backend, ANN) == {"Ann drinks tea."}

    def test_a_text_it_cannot_hold_is_refused_for_good(self, open_store: Open) -> None:
        """A NUL has no place in PostgreSQL's JSON; the store goes on."""
        backend = open_store("postgres")
        with pytest.raises(BackendError, match="langgraph put") as raised:
            plant(backend, ANN, "Ann drinks \0 tea.")
        assert raised.value.permanent
        plant(backend, ANN, "Ann drinks tea.")
        assert texts(backend, ANN) == {"Ann drinks tea."}

    def test_another_embedder_s_vectors_do_not_fit(self, open_store: Open) -> None:
        """A database is set up for one length of vectors: another one is refused for good."""
        open_store("postgres")
        with pytest.raises(BackendError, match="expected 256 dimensions, not 384") as raised:
            plant(open_store("postgres", embedder="minilm"), ANN, "Ann drinks tea.")
        assert raised.value.permanent

    @pytest.mark.parametrize(
        ("spoil", "said", "permanent"),
        [
            (lambda url: url.replace("postgres:not", "postgres:hot"), "authentication failed", True),
            (lambda url: f"postgresql://ann:{PASSWORD}@127.0.0.1:1/x", "does not let us in", False),
            (lambda url: f"ann {PASSWORD}", "url is none of a PostgreSQL database", True),
        ],
    )
    def test_no_failure_shows_the_password(
        self, open_store: Open, postgres: Server, spoil: Callable[[str], str], said: str, permanent: bool
    ) -> None:
        """A refused or unreachable server is told without what opens it."""
        with pytest.raises(BackendError, match=said) as raised:
            open_store("postgres", url=spoil(postgres.url))
        assert PASSWORD not in str(raised.value)
        assert PASSWORD.replace("not", "hot") not in str(raised.value)
        assert raised.value.permanent == permanent


@pytest.mark.backends
class TestPostgresContract(test_contract.TestContract):
    """All that a memory owes its users, on a real server."""

    @pytest.fixture
    def opened(
        self, request: pytest.FixtureRequest, postgres: Server, workers: dict[str, Opened]
    ) -> Iterator[Opened]:
        if "NUL" in request.node.name:
            request.applymarker(
                pytest.mark.xfail(reason="PostgreSQL's text holds no NUL", raises=BackendError, strict=True)
            )
        extra = ("langgraph-checkpoint-postgres==3.2.0", "psycopg[binary]")
        config = BackendConfig(
            "langgraph-postgres",
            "langgraph",
            {"store": "postgres", "url": postgres.url},
            isolation=Isolation("langgraph==1.2.24", extra),
        )
        stays = workers if request.function.__name__ not in CLOSING else None
        with lent(stays, config, KEEPS | {"amend", "durable"}, ("memories",)) as one:
            yield one
