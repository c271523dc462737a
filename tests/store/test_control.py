"""A control arm tells a backend that changed from a world that did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import verdict_words
from store.control import Pairing, against_control, read
from store.evidence import Moved, plain
from store.queries.controls import ControlNight, ControlRecord, Said

QUIET = Pairing(1, 1, backend_fell=False, control_fell=False)


def test_the_backend_alone_falls():
    """Cases that the control passes night after night, and the backend does not, are the backend's doing."""
    found = against_control([QUIET] * 3 + [Pairing(8, 0, backend_fell=True, control_fell=False)] * 3)
    assert found.cause == "backend"
    assert found.evidence.p <= 0.05


def test_both_fall():
    """When the control falls as well the cause is shared, however far both fell."""
    both = Pairing(1, 1, backend_fell=True, control_fell=True)
    assert against_control([QUIET] * 3 + [both] * 2).cause == "shared"


def test_a_first_bad_night_is_not_told_apart_yet():
    """One night on which the backend fell, and few pairs differ, tells nothing yet."""
    assert (
        against_control([QUIET, Pairing(2, 0, backend_fell=True, control_fell=False)]).cause == "cannot tell"
    )


def test_a_better_backend_is_no_alarm():
    """A backend that beats its control night after night is not said to have fallen."""
    assert against_control([Pairing(0, 6, backend_fell=False, control_fell=False)] * 4).cause == "none"
    assert against_control([]).cause == "none"


@given(st.lists(st.integers(0, 4), max_size=20))
def test_equal_pairs_never_accuse(differing: list[int]):
    """As many cases lost as gained, in every night, accuse nobody."""
    nights = [Pairing(n, n, backend_fell=False, control_fell=False) for n in differing]
    assert against_control(nights).cause == "none"


def test_what_was_long_known_excuses_no_night():
    """When both fall, a difference that has stood for many nights is no cause of it; one that is beyond
    chance in that night alone still is the backend's."""
    behind = [Pairing(2, 0, backend_fell=False, control_fell=False)] * 6
    assert against_control(behind).cause == "backend"
    both = Pairing(2, 0, backend_fell=True, control_fell=True)
    assert against_control([*behind, both]).cause == "shared"
    assert against_control([*behind, both._replace(lost=12)]).cause == "backend"


NIGHT = ControlNight(7, 8, 0, 0, 0, None, Said("worse", "suspected", None))


def read_after(night, word="worse", stage="suspected", unread=None):
    nights = () if night is None else (night,)
    return read(ControlRecord(8, "thing==1.0", unread, nights), 7, word, stage)


def test_a_leak_of_the_control_is_no_fall_of_tonight():
    """A control that leaks slowly explains a leak of the backend, and no sudden fall."""
    leaking = NIGHT._replace(control=Said("worse", "leak", None))
    assert read_after(NIGHT).cause == "shared"
    assert (read_after(leaking).cause, read_after(leaking).fell) == ("cannot tell", False)
    assert read_after(leaking, stage="leak").cause == "shared"


def series(words, lost=4):
    """A night for each letter: w worse, with cases lost; o unchanged, b better, c cannot tell, with none."""
    verdicts = {"w": "worse", "o": "unchanged", "b": "better", "c": "cannot_tell"}
    nights = [
        ControlNight(n, 100 + n, lost * (w == "w"), 0, 1, Said(verdicts[w], "", None), None)
        for n, w in enumerate(words)
    ]
    last = nights[-1].backend.verdict
    return read(ControlRecord(99, "thing==1.0", None, tuple(nights)), len(words) - 1, last, "")


@pytest.mark.parametrize(
    ("words", "nights", "cause"),
    [
        ("wwwoooo", 7, "backend"),  # four sound nights: it may come back
        ("wwwooooo", 8, "backend"),  # tonight's own verdict ends no count that it stands in
        ("wwwooooow", 1, "cannot tell"),
        ("wwwoooboo", 1, "none"),
        (
            "wwwooccooco",
            11,
            "backend",
        ),  # of two nights nothing can be told: they neither count nor break it
        ("wwwooccooocw", 2, "cannot tell"),
        ("woowoowoo", 9, "backend"),  # it comes and goes
        ("ooooooooo", 9, "none"),
    ],
)
def test_a_fall_that_is_over_is_no_evidence_any_more(words, nights, cause):
    """After five nights in a row that were not worse the count begins anew; pairs with errors too."""
    found = series(words)
    assert (found.nights, found.dropped, found.cause) == (nights, nights, cause)


TIME, LENGTH = Moved("recall_ms", 0.4, True, "suspected"), Moved("returned_n", -2.0, False, "suspected")


def test_what_moved_on_both_is_told():
    """A metric that moved the same way on the control tonight says so; one that moved the other way, or
    on the backend alone, does not."""
    said = Said("unchanged", "", None, frozenset({("recall_ms", True), ("returned_n", True)}))
    record = ControlRecord(8, "thing==1.0", None, (NIGHT._replace(control=said),))
    moved = (TIME, LENGTH)
    found = read(record, 7, "unchanged", "", moved)
    assert found.alike == ("recall_ms",)
    content = {"control": plain(found), "moved": plain(moved)}
    assert verdict_words.moved(content) == [
        "recall time +40 % (suspected); the control moved alike",
        "hits returned −2 (suspected)",
    ]
    unread = read(record._replace(unread="its run 8 is void"), 7, "unchanged", "", moved)
    assert unread.alike == ()


def test_why_it_could_not_be_read_is_one_short_line():
    """What a vendor says at length, over many lines, is told in a line that ends once."""
    told = verdict_words.control(
        {"control": plain(read_after(None, "unchanged", "", "its run 8 is void: no\nkey.\n"))}
    )
    assert told == "The control thing 1.0 could not be read (its run 8 is void: no key)."
    long = verdict_words.control({"control": plain(read_after(None, "unchanged", "", "word\n" * 200))})
    assert "\n" not in long
    assert len(long) < 260
    assert long.endswith("word ...).")


TOLD_BACKEND = (
    "The backend itself: 12 cases lost and 0 gained in 1 night (by chance alone at most once in 600 "
    "times) against its control thing 1.0, a frozen release asked in the same hours. "
    "The control fell too, by less. 2 pairs with an error left out."
)
TOLD_OPEN = (
    "Cause not known yet: the control thing 1.0 did not fall; 2 cases lost and 0 gained in 1 night "
    "(by chance alone 67 times in 100) against it."
)
EVEN = "0 cases lost and 0 gained in 1 night against it."
SAME_FELL = "the control thing 1.0 fell in the same hours."
VOID = "its run 8 is void: no key"
UNREAD = f"The control thing 1.0 could not be read ({VOID})"
FIRST = "the first run of this series"


@pytest.mark.parametrize(
    ("night", "word", "unread", "said"),
    [
        (NIGHT, "worse", None, f"Shared cause (provider, judge, machine): {SAME_FELL} {EVEN}"),
        (
            NIGHT._replace(lost=12, dropped=2),
            "worse",
            None,
            TOLD_BACKEND,
        ),
        (
            NIGHT._replace(lost=2, control=Said("unchanged", "", None)),
            "worse",
            None,
            TOLD_OPEN,
        ),
        (
            NIGHT._replace(control=Said("cannot_tell", "", FIRST)),
            "worse",
            None,
            f"Cause not known yet: of the control thing 1.0 nothing can be told: {FIRST}; {EVEN}",
        ),
        (
            NIGHT,
            "unchanged",
            None,
            f"In passes no worse than its control thing 1.0: {EVEN} The control alone fell.",
        ),
        (
            None,
            "worse",
            VOID,
            f"{UNREAD}, so whether the cause is shared cannot be told.",
        ),
        (None, "unchanged", VOID, f"{UNREAD}."),
    ],
)
def test_in_a_sentence(night, word, unread, said):
    """Whose doing it is, with the pairs that say so."""
    stage = "suspected" if word == "worse" else ""
    content = {"control": plain(read_after(night, word, stage, unread))}
    assert verdict_words.control(content) == said
    assert verdict_words.is_shared(content) == said.startswith("Shared cause")


def test_where_none_ran_nothing_is_said():
    """A run without a control, or one judged before there were any, has no sentence about one."""
    assert verdict_words.control({"control": None}) == verdict_words.control({}) == ""
    assert not verdict_words.is_shared({})
