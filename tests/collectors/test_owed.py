"""What the record refused is written once it can be, in order, and once."""

import pytest

from collectors.owed import Owed
from store.errors import DatabaseError, StoreError


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
    owed, record = Owed(), Record()
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
    owed, record = Owed(), Record()
    record.refusing = StoreError("another collector has taken over")
    owed.add(record.write("first"))
    owed.add(lambda: setattr(record, "refusing", None))
    owed.add(record.write("third"))
    owed.pay()
    assert record.written == ["third"]
