"""Parts of a running memtrend are killed: `scripts/kills.py` in small, which kills 50 times."""

import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from scripts.kills import KINDS, kill_leaders, kill_up
from scripts.kills_audit import Record, problems, unsettled
from scripts.kills_world import World


def test_nothing_is_lost_doubled_or_left(tmp_path):
    """After `kill -9` of collector, `up`, a worker and the dashboard all that was stored is there, once;
    every fire is accounted for, no run is made twice for it, and no process, lease, file or box is left."""
    dice = random.Random(7)
    kinds = list(KINDS)
    dice.shuffle(kinds)
    found = kill_up(tmp_path / "home", kinds, dice)
    assert found.wrong == []
    assert [kill.what for kill in found.kills] == kinds


def test_leaders_succeed_each_other(tmp_path):
    """Of two collectors that stand by, one goes on with what the other, which led and was killed, had begun:
    each fire comes once."""
    found = kill_leaders(tmp_path / "home", 2, random.Random(7))
    assert found.wrong == []
    assert found.starts == 4


FAULTS = {
    "twice: run of one fire": "UPDATE run SET trigger = 'schedule:kept', suite_id = 1, backend_id = 1,"
    """ meta = '{"scheduled_for": "now"}'""",
    "twice: run of one request": "UPDATE run SET trigger = 'request:ann',"
    """ meta = '{"request": "request-1"}'""",
    "twice: run of two": "UPDATE request SET run_ids = '[1, 1]'",
    "a case lies in no scenario": "INSERT INTO case_result (run_id, case_id, trial, status, attempts) VALUES"
    " (1, (SELECT min(id) FROM 'case'), 1, 'ok', 1)",
    "errors by run": "INSERT INTO case_result (run_id, case_id, trial, status, attempts) VALUES"
    " (1, (SELECT min(id) FROM 'case'), 1, 'error', 1)",
    "a scenario has no case": "INSERT INTO scenario_result (run_id, trial, scenario, status,"
    " plants, ingest_calls, ingest_tokens, money, attempts) VALUES (1, 1, 'door-0', 'ok', 0, 0, 0, 0, 1)",
    "a request has not ended with one whole run": "UPDATE request SET state = 'done'",
}


@pytest.mark.parametrize("told", FAULTS)
def test_what_is_wrong_with_a_record_is_told(told, tmp_path):
    """Each check that no constraint of the record makes for it finds what it is for."""
    with World(tmp_path / "home") as world:
        world.ask()
        record = Record(world.home)
        before = [*problems(record, {}, Counter()), *unsettled(record)]
        with closing(sqlite3.connect(record.path)) as connection, connection:
            connection.execute(FAULTS[told])
        after = [*problems(record, {}, Counter({2: 1})), *unsettled(record)]
    assert told in "".join(after)
    assert told not in "".join(before) or told.startswith("a request")
