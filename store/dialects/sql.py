"""SQL that each database writes in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import dml
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class _Now(FunctionElement[float]):
    type = sa.Float()
    inherit_cache = True


NOW: sa.ColumnElement[float] = _Now()
"""Seconds since 1970 on the database's clock."""


@compiles(_Now, "sqlite")
def _now_sqlite(_element: _Now, _compiler: Any, **_options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(_Now, "postgresql")
def _now_postgres(_element: _Now, _compiler: Any, **_options: Any) -> str:
    """Not `now()`, which stands still from before the wait for the write lock."""
    return "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"


class FirstHit(FunctionElement[str]):
    """The text of the hit that came first, taken out of a detail's JSON by the database; None where there
    was none."""

    type = sa.Text()
    inherit_cache = True


@compiles(FirstHit, "sqlite")
def _first_hit_sqlite(element: FirstHit, compiler: Any, **options: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **options)}, '$.hits[0].text')"


@compiles(FirstHit, "postgresql")
def _first_hit_postgres(element: FirstHit, compiler: Any, **options: Any) -> str:
    r"""PostgreSQL's text holds no NUL, and its JSON refuses to make one of \u0000."""
    content = compiler.process(element.clauses, **options)
    return rf"(CAST(replace({content}, '\u0000', '\ufffd') AS JSON) #>> '{{hits,0,text}}')"


class _Both:
    constraint_target = None
    """All that PostgreSQL's compiler asks of SQLite's clause besides."""


class _Update(_Both, dml.OnConflictDoUpdate):
    inherit_cache = True


class _Nothing(_Both, dml.OnConflictDoNothing):
    inherit_cache = True


class upsert(sqlite.Insert):  # noqa: N801: called like `sa.insert`
    """INSERT with ON CONFLICT, for either database."""

    inherit_cache = True

    def on_conflict_do_update(self, *arguments: Any, **options: Any) -> upsert:
        return self.ext(_Update(*arguments, **options))

    def on_conflict_do_nothing(self, *arguments: Any, **options: Any) -> upsert:
        return self.ext(_Nothing(*arguments, **options))


def insert_rows(
    connection: Connection, table: sa.Table, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert many rows of plain numbers and texts: half the time of `connection.execute(insert, dicts)`,
    since no value is converted."""
    values = list(rows)
    if values:
        statement = _insert_sql(table, tuple(columns), connection.dialect)
        named = (
            values
            if connection.dialect.positional
            else [dict(zip(columns, row, strict=True)) for row in values]
        )
        connection.exec_driver_sql(statement, named)


def plain_rows(connection: Connection, query: sa.Select[Any], **bound: Any) -> list[tuple[Any, ...]]:
    """All rows of a query for plain numbers and texts, as the driver gives them: a third of the time, since
    no value is converted and no row has names."""
    rows: list[tuple[Any, ...]] = list(connection.execute(query, bound).cursor.fetchall())
    return rows


@lru_cache(maxsize=64)
def _insert_sql(table: sa.Table, columns: tuple[str, ...], dialect: sa.Dialect) -> str:
    statement = table.insert().compile(dialect=dialect, column_keys=list(columns))
    if dialect.positional and statement.positiontup != list(columns):
        raise ValueError(f"columns of {table.name} must come in the table's order: {statement.positiontup}")
    return str(statement)


def is_double(error: IntegrityError) -> bool:
    """Whether a row was refused because one with its key is there already."""
    name = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", "")
    return name in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "23505")
