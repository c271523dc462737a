"""What a record on a PostgreSQL server has of its own: no secret shown, no NUL, turns of writers, lost
connections."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import sqlalchemy as sa

from store import models, queries, writes
from store.database import Database, DatabaseError, open_database
from store.dialects import postgres
from tests.databases import Databases
from tests.postgres import PASSWORD
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
