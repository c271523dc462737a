"""A control arm tells a backend that changed from a world that did."""

from hypothesis import given
from hypothesis import strategies as st

from store.control import Pairing, against_control

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
