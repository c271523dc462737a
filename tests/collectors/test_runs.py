"""What `memtrend run` tells while runs go on."""

import pytest

from collectors import runs
from collectors.plans import Progress


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when told to."""
    at = [100.0]
    monkeypatch.setattr(runs.time, "monotonic", lambda: at[0])
    return at


def test_rate_of_a_resumed_run(clock, capsys):
    """Rate and time left are of this process's work: what was answered before a resume does not count."""
    show = runs.PlainDisplay()
    for done, at in ((80, 100.0), (82, 104.0), (90, 110.0)):
        clock[0] = at
        show(Progress(7, "mine", "floor", done, 100, 0))
    show.end("run 7: whole")
    clock[0] = 200.0
    show(Progress(8, "mine", "hybrid", 0, 100, 0))
    clock[0] = 210.0
    show(Progress(8, "mine", "hybrid", 50, 100, 0))
    assert capsys.readouterr().err.splitlines() == [
        "mine on floor: 90/100 cases, 1.0 a second, 10 s left",
        "run 7: whole",
        "mine on hybrid: 50/100 cases, 5.0 a second, 10 s left",
    ]
