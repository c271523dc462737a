"""What the record refused is written once it can be, in order, and once."""

import pytest

from collectors.owed import Owed
from store import writes
from store.errors import DatabaseError, InvalidWrite, StoreError


class Record:
    """`refusing`: what a write raises."""

    def __init__(self):
        self.written, self.refusing = [], None

    def write(self, what):
        def do():
            if self.refusing:
                raise self.refusing
            self.written.append(what)

        return do


def test_what_is_refused_stays_owed():
    """While the record refuses nothing is forgotten, and each thing is written once, in its order."""
    owed, record = Owed(pytest.fail), Record()
    for what in ("first", "second"):
        owed.add(record.write(what))
    record.refusing = DatabaseError("no space left")
    for _ in range(2):
        with pytest.raises(DatabaseError):
            owed.pay()
    record.refusing = None
    owed.pay()
    owed.pay()
    assert record.written == ["first", "second"]


def test_what_another_has_settled_is_not_owed_any_more():
    """What is refused because somebody else leads now is theirs to write, and holds nothing up."""
    owed, record = Owed(pytest.fail), Record()
    record.refusing = StoreError("another collector has taken over")
    owed.add(record.write("first"))
    owed.add(lambda: setattr(record, "refusing", None))
    owed.add(record.write("third"))
    owed.pay()
    assert record.written == ["third"]


def test_what_can_never_be_written_holds_nothing_up(db):
    """A write that is at fault itself is told and dropped, once, and what is owed after it is written."""
    told, record = [], Record()
    owed = Owed(told.append)

    def of_no_run():
        writes.add_event(db, "info", "test", "of a run that is not there", 4711)

    owed.add(of_no_run)
    owed.add(record.write("second"))
    owed.pay()
    owed.pay()
    assert record.written == ["second"]
    assert len(told) == 1
    assert "never be written" in told[0]
    assert "FOREIGN KEY" in told[0]


def test_what_cannot_even_be_told_stays_owed():
    """Where the record refuses the news as well, it is the record, and nothing is dropped."""
    record = Record()
    owed = Owed(lambda message: record.write(message)())
    record.refusing = InvalidWrite("no such table")
    owed.add(record.write("first"))
    with pytest.raises(DatabaseError):
        owed.pay()
    record.refusing = None
    owed.pay()
    assert record.written == ["first"]
