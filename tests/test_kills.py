"""Parts of a running memtrend are killed: `scripts/kills.py` in small, which kills 50 times."""

import random

from scripts.kills import KINDS, kill_leaders, kill_up


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
