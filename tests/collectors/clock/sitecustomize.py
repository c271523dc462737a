"""The clock of a process under test: off by as many seconds as the file says that CLOCK_FILE names.

A folder to put into PYTHONPATH. Python's clock and SQLite's move together, as with a machine's clock that is
set; the monotonic one does not, as on a machine.
"""

import os
import sqlite3
import threading
import time
from pathlib import Path

import time_machine

FILE = Path(os.environ["CLOCK_FILE"])
POLL_S = 0.01


clock = time_machine.travel(time.time(), tick=True).start()


def follow():
    off = "0"
    while True:
        time.sleep(POLL_S)
        if (said := FILE.read_text()) and said != off:
            off = said
            clock.move_to(time_machine.escape_hatch.time.time() + float(off))


def by_this_clock(connect):
    def connected(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.create_function("julianday", 1, lambda _: time.time() / 86400 + 2440587.5)
        return connection

    return connected


sqlite3.connect = sqlite3.dbapi2.connect = by_this_clock(sqlite3.dbapi2.connect)
threading.Thread(target=follow, daemon=True).start()
