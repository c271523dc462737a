"""A control arm tells a backend that changed from a world that did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import verdict_words
from store.control import Pairing, against_control, read
from store.evidence import plain
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


TOLD_BACKEND = (
    "The backend itself: 12 cases lost and 0 gained in 1 night (p = 0.0015) against its control thing 1.0. "
    "The control fell too, by less. 2 pairs with an error left out."
)
TOLD_OPEN = (
    "Cause not known yet: the control thing 1.0 did not fall; 2 cases lost and 0 gained in 1 night "
    "(p = 0.67) against it."
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
        (NIGHT, "unchanged", None, f"No worse than its control thing 1.0: {EVEN} The control alone fell."),
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
