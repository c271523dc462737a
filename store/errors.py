"""What the store raises. Every message says what is wrong, where, and what to do next."""

from __future__ import annotations


class StoreError(Exception):
    """The record refuses or cannot do what was asked. The message is made for the user."""


class DatabaseError(StoreError):
    """The record cannot be opened, read or written."""


class InvalidWrite(DatabaseError):
    """What was to be written is at fault, not the record: it would be refused again, however often."""


class NoRecord(DatabaseError):
    """Nothing lies where the record should."""


class RecordGone(DatabaseError):
    """The file of the record is not there any more. It may come back."""


class RecordReplaced(DatabaseError):
    """Another file lies where the record was opened: what is open is not the record any more."""
