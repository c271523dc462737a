"""What a run's processes told is kept with it: whole where it is short, without secrets."""

import pytest

from store import hiding, queries, writes


@pytest.mark.parametrize("told", ["", "one line", "two\nlines of \N{SNOWMAN} \0 and \ud800"])
def test_is_kept(db, seed, told):
    """As it was told, but for what no database can hold."""
    run_id = seed.run(seed.suite(), [])
    writes.keep_journal(db, run_id, told)
    assert queries.journal(db, run_id) == told.replace("\0", "\ufffd").replace("\ud800", "?")


def test_the_last_one_counts(db, seed):
    """What a run has told so far takes the place of what it had told before."""
    run_id = seed.run(seed.suite(), [])
    writes.keep_journal(db, run_id, "first")
    writes.keep_journal(db, run_id, "first, and second")
    assert queries.journal(db, run_id) == "first, and second"
    assert queries.journal(db, run_id + 1) == ""


def test_commands_no_terminal(db, seed):
    """Control sequences are shown as what they are, and obeyed by nothing."""
    run_id = seed.run(seed.suite(), [])
    writes.keep_journal(db, run_id, "\x1b[2J\x1b]0;title\x07 tab\tand\nline\x9b")
    assert queries.journal(db, run_id) == "\ufffd[2J\ufffd]0;title\ufffd tab\tand\nline\ufffd"


def test_has_a_bound(db, seed):
    """Of a process that talks for ever the beginning and the end are kept."""
    run_id = seed.run(seed.suite(), [])
    writes.keep_journal(db, run_id, f"begin {'x' * 200_000} end")
    kept = queries.journal(db, run_id)
    assert len(kept) < 70_000
    assert kept.startswith("begin")
    assert kept.endswith("end")
    assert "[...]" in kept


def test_holds_no_secret(db, seed):
    """What an SDK logs of the key it was given is hidden."""
    hiding.remember_secret("sk-very-secret-journal-1")
    run_id = seed.run(seed.suite(), [])
    writes.keep_journal(db, run_id, "POST with sk-very-secret-journal-1 failed")
    assert "very-secret" not in queries.journal(db, run_id)
