"""Suites, their cases, and what people decided about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field

from store.columns import JsonText, UtcDateTime
from store.models.base import WITHOUT_ROWID, Base


class Suite(Base, table=True):
    """`version` is the one in force, which is not the newest one when a suite is set back. `licence` and
    `citation` travel with its results, "" where there is none to name."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    kind: str
    origin: str
    version: str
    project: str
    owner: str
    licence: str = Field(sa_column_kwargs={"server_default": ""})
    citation: str = Field(sa_column_kwargs={"server_default": ""})


class SuiteVersion(Base, table=True):
    __tablename__ = "suite_version"
    __table_args__ = (UniqueConstraint("suite_id", "version"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    version: str
    cases: int
    plants: int
    created_at: datetime = Field(sa_type=UtcDateTime)


class Case(Base, table=True):
    __table_args__ = (UniqueConstraint("suite_id", "name", "hash"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    name: str
    hash: str
    query: str
    k: int
    tags: list[str] = Field(sa_type=JsonText)
    critical: bool
    cluster: str | None
    source: str
    story: dict[str, Any] = Field(sa_type=JsonText)
    created_at: datetime = Field(sa_type=UtcDateTime)


class SuiteVersionCase(Base, table=True):
    __tablename__ = "suite_version_case"
    __table_args__ = WITHOUT_ROWID

    suite_version_id: int = Field(foreign_key="suite_version.id", primary_key=True)
    case_id: int = Field(foreign_key="case.id", primary_key=True)


class SuiteChange(Base, table=True):
    """Why a version of a suite came to be. Of several reasons for one version the last one stands."""

    __tablename__ = "suite_change"

    id: int | None = Field(default=None, primary_key=True)
    suite_version_id: int = Field(foreign_key="suite_version.id", index=True)
    reason: str
    author: str
    at: datetime = Field(sa_type=UtcDateTime)


class CaseState(Base, table=True):
    """What a person decided about a case: the last row of a name is in force, the others are its history.
    state: quarantine (until `expires`), released or retired."""

    __tablename__ = "case_state"
    __table_args__ = (Index("ix_case_state_of", "suite_id", "name"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    name: str
    state: str
    owner: str
    reason: str
    expires: datetime | None = Field(sa_type=UtcDateTime)
    author: str
    at: datetime = Field(sa_type=UtcDateTime)


class LintReport(Base, table=True):
    """That a version was looked at, by which `rules`. Of `asked` cases that both floors could be asked,
    `telling` ones tell a memory from a floor."""

    __tablename__ = "lint_report"

    suite_version_id: int = Field(foreign_key="suite_version.id", primary_key=True)
    rules: str
    asked: int | None
    telling: int | None
    at: datetime = Field(sa_type=UtcDateTime)


class Finding(Base, table=True):
    id: int | None = Field(default=None, primary_key=True)
    suite_version_id: int = Field(foreign_key="suite_version.id", index=True)
    file: str
    line: int
    case_name: str
    rule: str
    severity: str
    message: str
    hint: str


class Mutant(Base, table=True):
    """What a version of a suite made of one fault put into a backend. `kind` None: nothing was noticed."""

    id: int | None = Field(default=None, primary_key=True)
    suite_version_id: int = Field(foreign_key="suite_version.id", index=True)
    backend: str
    fault: str
    meaning: str
    detected: bool
    lost: int
    critical_lost: int
    kind: str | None
    kind_right: bool
    at: datetime = Field(sa_type=UtcDateTime)


class ExpectedCount(Base, table=True):
    """How many memories a leg of a standing index should hold; `source` says who knows: never the index.
    The last row of a leg is in force."""

    __tablename__ = "expected_count"
    __table_args__ = (Index("ix_expected_count_of", "suite_id", "backend_id"),)

    id: int | None = Field(default=None, primary_key=True)
    suite_id: int = Field(foreign_key="suite.id")
    backend_id: int = Field(foreign_key="backend.id")
    leg: str
    expected: int
    source: str
    author: str
    at: datetime = Field(sa_type=UtcDateTime)
