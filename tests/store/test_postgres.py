"""What a record on a PostgreSQL server has of its own: no secret shown, no NUL, turns of writers, lost
connections."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import sqlalchemy as sa

from store import models, queries, writes
from store.database import Database, DatabaseError, open_database
from store.dialects import base, postgres
from tests.databases import Databases
from tests.postgres import PASSWORD, server
from tests.store.seeding import Seed, outcome, scenario


@pytest.fixture
def kind() -> str:
    return "postgres"


def test_text_sorts_by_its_bytes(db: Database) -> None:
    """Names come in the same order as from SQLite, whatever language the server speaks."""
    for name in ("b", "a", "B", "é", "_"):
        writes.beat(db, name, 1, "host")
    assert [row.name for row in queries.heartbeats(db)] == ["B", "_", "a", "b", "é"]
    with db.read() as connection:
        assert connection.execute(postgres._SORTED_OTHERWISE).all() == []


def test_a_nul_is_marked(db: Database, seed: Seed) -> None:
    """A text with a NUL, which PostgreSQL cannot hold, is stored with a mark in its place; a stored answer
    keeps it, and its first hit is shown with the mark."""
    writes.add_mark(db, "a\0b", meta={"\0": "\0"})
    (mark,) = queries.marks(db)
    assert (mark.text, mark.meta) == ("a\N{REPLACEMENT CHARACTER}b", {"\0": "\0"})
    run_id, token = seed.open(seed.suite())
    found = replace(outcome("a"), detail={"hits": [{"text": "c\0d \\u"}], "reply": "\0"})
    writes.save_scenario(db, run_id, scenario([found]), token)
    (row,) = queries.run_cases(db, run_id)
    assert row.first_hit == "c\N{REPLACEMENT CHARACTER}d \\u"
    (stored,) = queries.case_results(db, row.case_id, run_id)
    assert stored.detail["reply"] == "\0"


def test_the_server_is_named(db: Database) -> None:
    """What keeps the record is told with its version, as the server itself tells it."""
    with db.read() as connection:
        version = connection.exec_driver_sql("SELECT version()").scalar_one()
    assert db.server().startswith("PostgreSQL ")
    assert version.startswith(db.server().split(" (")[0])


def test_a_lost_connection_is_made_anew(db: Database, databases: Databases) -> None:
    """A server that was restarted between two questions costs neither of them."""
    assert queries.marks(db) == []
    databases.run(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        f"WHERE datname = '{sa.make_url(db.url_public).database}'"
    )
    assert queries.marks(db) == []


def test_a_server_that_is_away_is_waited_for(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that was there and takes no connection for a moment, as in a restart, fails nothing; one that
    stays away does so in words."""
    refusals = iter([1, 1, 1])
    writes.add_mark(db, "before")
    connect = psycopg.connect

    def refused(*arguments: Any, **options: Any) -> Any:
        if next(refusals, 0):
            raise psycopg.OperationalError("connection refused")
        return connect(*arguments, **options)

    monkeypatch.setattr(psycopg, "connect", refused)
    db._engine.dispose()
    writes.add_mark(db, "after")
    assert [mark.text for mark in queries.marks(db)] == ["before", "after"]
    refusals = itertools.repeat(1)
    monkeypatch.setattr(base, "BUSY_SECONDS", 0.3)
    db._engine.dispose()
    with pytest.raises(DatabaseError, match="cannot be reached"):
        writes.add_mark(db, "never")


def test_a_server_that_never_was_is_told_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong URL is not tried again and again."""
    tried = []

    def refused(*arguments: Any, **_options: Any) -> Any:
        tried.append(arguments)
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(psycopg, "connect", refused)
    with pytest.raises(DatabaseError, match="cannot be reached"):
        open_database(url)
    assert len(tried) == 1


def test_who_falls_silent_loses_its_turn(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that says nothing for too long (its machine may be gone) is ended by the server: the next one
    writes, and nothing of the first is stored."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.3)
    silent, other = open_database(url), open_database(url)

    def fall_silent() -> None:
        with silent.write() as connection:
            connection.exec_driver_sql("INSERT INTO scorer (version) VALUES ('silent')")
            writes.add_mark(other, "written")
            connection.exec_driver_sql("INSERT INTO scorer (version) VALUES ('late')")

    with pytest.raises(DatabaseError, match="the server ended it; do it again"):
        fall_silent()
    assert [mark.text for mark in queries.marks(silent)] == ["written"]
    with other.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM scorer").scalar_one() == 0
    silent.close()
    other.close()


def test_a_question_writes_nothing(db: Database) -> None:
    """A read cannot change the record."""
    with pytest.raises(DatabaseError, match="read-only"), db.read() as connection:
        connection.exec_driver_sql("INSERT INTO scorer (version) VALUES ('1')")


def test_another_encoding_is_refused(databases: Databases) -> None:
    """A database that cannot hold every text is refused before a table is made, with the way out."""
    databases.run("CREATE DATABASE narrow ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(DatabaseError, match=r"encoded in LATIN1.*ENCODING 'UTF8'"):
        open_database(databases.named("narrow"))
    engine = sa.create_engine(databases.named("narrow"))
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()
    databases.run("DROP DATABASE narrow")


@pytest.fixture
def ann(databases: Databases) -> Iterator[str]:
    """A role that may do no more than connect."""
    databases.run(f"CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}'")
    yield "ann"
    databases.run("DROP ROLE ann")


def test_a_user_that_may_make_no_tables(databases: Databases, ann: str) -> None:
    """Who may not make tables is told what would do, and makes them in a schema of its own, where another
    program's tables in the same database are nothing to it."""
    with databases.fresh("template1") as fresh:
        url = sa.make_url(fresh).set(username=ann)
        with pytest.raises(DatabaseError, match="may not; make it the owner of the database, or of"):
            open_database(url.render_as_string(hide_password=False))
        own = url.update_query_dict({"options": "-csearch_path=own"}).render_as_string(hide_password=False)
        with pytest.raises(DatabaseError, match="make it with CREATE SCHEMA"):
            open_database(own)
        engine = sa.create_engine(fresh)
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE other (id INTEGER)")
            connection.exec_driver_sql(f"CREATE SCHEMA own AUTHORIZATION {ann}")
        engine.dispose()
        with closing(open_database(own)) as db:
            writes.add_mark(db, "there")
            assert [mark.text for mark in queries.marks(db)] == ["there"]


def test_what_the_server_ended_is_told(url: str) -> None:
    """A limit of the server on statements, and a server that stops, are told as such."""
    limited = sa.make_url(url).update_query_dict({"options": "-cstatement_timeout=50"})
    with (
        closing(open_database(limited.render_as_string(hide_password=False))) as db,
        pytest.raises(DatabaseError, match="statement_timeout"),
        db.read() as connection,
    ):
        connection.exec_driver_sql("SELECT pg_sleep(10)")


def test_a_server_that_stops_is_told(db: Database) -> None:
    """What was under way when the server ended the connection says that it is stopping."""
    with pytest.raises(DatabaseError, match="is stopping or starting"), db.read() as connection:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")


def test_a_missing_driver_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error says which one it is."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseError, match="psycopg is not installed: make install EXTRAS=postgres"):
        open_database(url)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"password": "wrong-as-well"}, "authentication failed for user"),
        ({"username": "ann"}, "authentication failed for user"),
        ({"database": "nowhere"}, 'database "nowhere" does not exist'),
        ({"query": {"host": "/nowhere", "password": PASSWORD}}, "cannot be reached.*check database.url"),
        ({"host": "127.0.0.1", "port": 1, "query": {}}, "Connection refused"),
        ({"query": {"host": "/nowhere", "passwort": PASSWORD}}, "cannot be reached"),
    ],
)
def test_no_error_shows_a_password(databases: Databases, changed: dict[str, str], said: str) -> None:
    """Whatever cannot be reached is named with what to look at, and without the password."""
    url = databases.url.set(**changed)  # type: ignore[arg-type]
    with pytest.raises(DatabaseError, match=said) as error:
        open_database(url.render_as_string(hide_password=False))
    assert "***" in str(error.value)
    for secret in (PASSWORD, "wrong-as-well", databases.named("x").split(":")[2].split("@")[0]):
        assert secret not in str(error.value)


def _shape(url: str) -> dict[str, object]:
    engine = sa.create_engine(url)
    found = sa.inspect(engine)
    shape = {
        table: {
            "columns": {(one["name"], one["nullable"]) for one in found.get_columns(table)},
            "key": found.get_pk_constraint(table)["constrained_columns"],
            "indexes": {
                (one["name"], *one["column_names"], one["unique"]) for one in found.get_indexes(table)
            },
            "refers": {
                (*one["constrained_columns"], one["referred_table"]) for one in found.get_foreign_keys(table)
            },
        }
        for table in found.get_table_names()
        if table != "alembic_version"
    }
    engine.dispose()
    return shape


def test_models_are_what_migrations_make(url: str, databases: Databases) -> None:
    """A record made by the migrations has the tables, keys and indexes of the models here, too."""
    with databases.fresh("template1") as modelled:
        engine = sa.create_engine(modelled)
        models.Base.metadata.create_all(engine)
        engine.dispose()
        assert _shape(modelled) == _shape(url)


def test_a_server_of_the_tests_goes_with_its_keeper() -> None:
    """A keeper that is told to end takes server and folder along."""
    with server() as running:
        data = Path(str(sa.make_url(running.url).query["host"]))
        process = int((data / "postmaster.pid").read_text().split()[0])
        os.kill(running.keeper, signal.SIGTERM)
    assert not data.parent.exists()
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(process).status() == psutil.STATUS_ZOMBIE  # until somebody looks after it
