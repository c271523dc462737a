"""An export says what came of every case, and nothing of what anyone wrote."""

import csv
import io

import pytest
from pyarrow import parquet

from collectors.arguments import Refused
from collectors.export import write_csv, write_parquet
from collectors.plans import RunLimits
from collectors.runner import run
from store import queries
from store.errors import DatabaseError
from tests.collectors.playground import case, cases, plan, results, suite

pytestmark = pytest.mark.usefixtures("no_pauses")


def rows(db, **filters):
    file = io.StringIO(newline="")
    written = write_csv(db, file, **filters)
    file.seek(0)
    found = list(csv.DictReader(file))
    assert len(found) == written
    return found


@pytest.fixture
def runs(db, tmp_path):
    """Two runs of a suite with a lost case, an error and one that does not apply."""
    by_id = case(
        "ivory", expect_any=[], expect_ids=["ivory"], writes=[{"id": "ivory", "text": "an ivory key"}]
    )
    asked = suite(tmp_path, [*cases(3), case("refuse", tags=["keys", "a, b"]), by_id])
    limits = RunLimits(5, max_error_rate=0.5)
    refusing = plan(asked, "Refusing", limits=limits, trials=2, options={"lost": "basil key"})
    return run(refusing, db), run(plan(asked, "Bare", name="bare"), db)


def test_rows(db, runs):
    """A row for each case and trial of each run, newest run first, with the columns of the record."""
    found = rows(db)
    assert tuple(found[0]) == queries.EXPORTED
    assert [row["run"] for row in found] == ["2"] * 5 + ["1"] * 10
    assert {(row["case"], int(row["trial"])) for row in found if row["run"] == "1"} == set(results(db, 1))


def test_what_is_no_number(db, runs):
    """A cell of what was not answered, or does not apply, is empty, and never 0."""
    found = {row["case"]: row for row in rows(db, run_ids=[1])}
    assert (found["case-amber"]["status"], found["case-amber"]["pass"]) == ("ok", "1.0")
    assert (found["case-basil"]["pass"], found["case-basil"]["failure"]) == ("0.0", "not stored")
    failed = found["case-refuse"]
    told = (failed["status"], failed["failure"], failed["tags"])
    assert told == ("error", "backend error", "keys;a, b")
    assert {failed[name] for name in ("pass", "mrr", "latency_ms", "returned_n")} == {""}
    (skipped,) = [row for row in rows(db, run_ids=[2]) if row["status"] == "skipped"]
    assert (skipped["case"], skipped["pass"], skipped["attempts"]) == ("case-ivory", "", "0")


@pytest.mark.parametrize(
    ("filters", "number"),
    [
        ({"backends": ["bare"]}, 5),
        ({"run_ids": [1]}, 10),
        ({"suites": ["small"]}, 15),
        ({"suites": ["no"]}, 0),
    ],
)
def test_filters(db, runs, filters, number):
    """Runs, suites and backends narrow it; nothing found is a header alone."""
    assert len(rows(db, **filters)) == number


def test_no_texts(db, runs):
    """No text of a memory, question, answer or error is in it."""
    file = io.StringIO(newline="")
    write_csv(db, file)
    for text in ("opens door", "which door", "nobody knows", "permanent trouble"):
        assert text not in file.getvalue()


def test_parquet_holds_the_same(db, runs, tmp_path):
    """As Parquet the same rows come with types: what does not apply is null, a time is a time."""
    assert write_parquet(db, tmp_path / "all.parquet") == 15
    table = parquet.read_table(tmp_path / "all.parquet")
    assert tuple(table.column_names) == queries.EXPORTED
    told = [
        {name: "" if value is None else str(value) for name, value in row.items() if name != "started_at"}
        for row in table.to_pylist()
    ]
    assert told == [{name: row[name] for name in row if name != "started_at"} for row in rows(db)]
    assert str(table.schema.field("started_at").type) == "timestamp[ms, tz=UTC]"
    assert {str(table.schema.field(name).type) for name in ("pass", "latency_ms")} == {"double"}


def test_parquet_is_whole_or_not_there(db, runs, tmp_path, monkeypatch):
    """An export that fails half-way leaves no file that could be taken for all there is, and a former one."""
    whole = queries.export_cases(db)
    first = next(whole)

    def cut(*_, **__):
        yield first
        raise DatabaseError("the server is stopping")

    (tmp_path / "cases.parquet").write_bytes(b"former")
    monkeypatch.setattr(queries, "export_cases", cut)
    with pytest.raises(DatabaseError):
        write_parquet(db, tmp_path / "cases.parquet")
    (left,) = tmp_path.glob("*cases.parquet*")
    assert left.read_bytes() == b"former"


def test_parquet_that_cannot_be_written(db, runs, tmp_path):
    """A folder that is not there is named."""
    with pytest.raises(Refused, match="nowhere"):
        write_parquet(db, tmp_path / "nowhere" / "all.parquet")
