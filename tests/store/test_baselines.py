"""What a run is held against, as nights and decisions come: no record, no backend."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import portable
from store.baselines import FULL, HISTORY, RECENT, Decision, Night, baseline
from store.errors import StoreError
from store.portable import Carried

START = datetime(2026, 3, 1, 3, tzinfo=UTC)
SYSTEM = (("scorer", "3"),)


def at(number):
    return START + timedelta(days=number)


def night(number, accepted=True, system=SYSTEM, **more):
    """The run of that number, a day after the one before it."""
    return Night(number, at(number), accepted, system, **more)


def nights(*numbers, **more):
    return [night(number, **more) for number in numbers]


def decision(action, *run_ids, on=0.0):
    return Decision(action, run_ids, "because", "noor", at(on))


def held(number, earlier, *decisions):
    return baseline(night(number), earlier, decisions)


def why(found):
    return {one.run_id: one.why for one in found.left_out}


def test_it_rolls_behind_an_anchor_that_stands():
    """A run is compared with the newest ten nights; the anchor stays the first ten of the series."""
    found = held(99, nights(*range(1, 81)))
    assert found.recent == tuple(range(81 - RECENT, 81))
    assert found.history == tuple(range(81 - HISTORY, 81))
    assert found.anchor == tuple(range(1, RECENT + 1))
    assert (found.decision, found.left_out) == (None, ())


def test_what_was_worse_stays_out():
    """A night that was not accepted is no part of the baseline, and says to see its verdict."""
    found = held(9, [night(1), night(2, accepted=False), night(3)])
    assert found.recent == found.anchor == (1, 3)
    assert why(found) == {2: "not accepted: see its verdict"}


def test_it_is_provisional_until_five_days():
    """Nights of one day share its mood: it is days that count, not runs."""
    same_day = [night(number)._replace(at=START + timedelta(minutes=number)) for number in range(1, 9)]
    assert held(30, same_day).provisional
    assert held(30, nights(*range(1, FULL))).provisional
    assert not held(30, nights(*range(1, FULL + 1))).provisional


@pytest.mark.parametrize("name", ["scorer", "embedder", "judge"])
def test_another_system(name):
    """A night whose scorer, embedder or judge was another cannot be compared, and which is said."""
    found = held(9, [night(1, system=(*SYSTEM, (name, "old")))._replace(run_id=1), night(2)])
    assert found.recent == (2,)
    assert why(found)[1].startswith(f"another {name}: ")


def test_a_pin_moves_the_anchor():
    """Pinned nights are the anchor, be they refused ones; what is compared with still rolls."""
    found = held(40, [*nights(*range(1, 30)), night(30, accepted=False)], decision("pin", 5, 30))
    assert found.anchor == (5, 30)
    assert found.recent == (*range(21, 30), 30)
    assert not found.held


def test_a_hold_stops_the_rolling():
    """Held nights are all that a run is compared with, until a later pin or reset."""
    earlier = nights(*range(1, 30))
    found = held(40, earlier, decision("hold", 3, 4))
    assert (found.recent, found.history, found.anchor, found.held) == ((3, 4), (3, 4), (3, 4), True)
    after = held(40, earlier, decision("hold", 3, 4), decision("pin", 8))
    assert (after.anchor, after.held, after.recent[-1]) == ((8,), False, 29)


@pytest.mark.parametrize(
    ("other", "said"),
    [(night(2, system=(("scorer", "2"),)), "another scorer: 2, now 3"), (night(9), "no earlier run")],
)
def test_a_hold_of_what_cannot_be_compared_is_empty(other, said):
    """Where no held night can be compared with, no other takes its place, and why is the last thing said."""
    earlier = [night(1), *([other] if other.run_id < 9 else []), night(3, accepted=False), night(4)]
    found = held(8, earlier, decision("hold", other.run_id))
    assert (found.recent, found.history, found.anchor, found.held) == ((), (), (), True)
    assert found.left_out[-1].run_id == other.run_id
    assert said in found.left_out[-1].why


def test_exclude_and_include():
    """An excluded night is in no baseline, with the reason, until it is included again."""
    earlier = nights(1, 2, 3)
    found = held(9, earlier, decision("exclude", 2))
    assert (found.recent, why(found)) == ((1, 3), {2: "excluded: because"})
    assert held(9, earlier, decision("exclude", 2), decision("include", 2)).recent == (1, 2, 3)


def test_an_intended_change_begins_with_its_run():
    """The night that a meant change came with is the first of the new baseline, though it was refused by the
    old one; others that were refused stay out, since they may hold another change."""
    earlier = [
        night(1),
        night(2),
        night(3, accepted=False),
        night(4, accepted=False),
        night(8, accepted=False),
    ]
    found = held(9, earlier, decision("intended", 3, on=7))
    assert found.recent == (3,)
    assert set(why(found)) == {1, 2, 4, 8}
    assert found.decision.action == "intended"


def test_a_pin_after_a_reset_reaches_behind_it():
    """What a person pins is the anchor, though the baseline had begun anew after it."""
    found = held(9, nights(1, 2, 3, 4), decision("reset", on=2.5), decision("pin", 1, 2))
    assert (found.anchor, found.recent) == ((1, 2), (1, 2, 3, 4))


def test_a_reset_forgets_pins():
    """After a reset only later nights count, and what was pinned before is forgotten."""
    found = held(9, nights(1, 2, 3, 4), decision("pin", 1), decision("reset", on=2.5))
    assert (found.recent, found.anchor) == ((3, 4), (3, 4))


def test_primed_nights_are_named():
    """A run that primed the baseline is told, so that all of its trials count."""
    assert held(9, [night(1, primed=True), night(2)]).primed == (1,)


ACTIONS = st.sampled_from(["pin", "hold", "exclude", "include", "intended"])
DECISIONS = st.lists(
    st.builds(
        lambda action, ids, on: Decision(action, tuple(ids), "because", "noor", at(on)),
        ACTIONS,
        st.lists(st.integers(1, 30), min_size=1, max_size=3),
        st.integers(0, 31),
    ),
    max_size=4,
)
NIGHTS = st.lists(st.booleans(), max_size=30).map(
    lambda accepted: [night(number, one) for number, one in enumerate(accepted, 1)]
)


@given(NIGHTS, DECISIONS)
def test_every_night_is_used_or_told_why_not(earlier, decisions):
    """Whatever is decided: each set is in order, within its limit, and of earlier nights; a night that is
    left out is in none of them, and one that is neither left out nor refused could be in the baseline."""
    found = baseline(night(99), earlier, decisions)
    known = {one.run_id for one in earlier}
    for ids in (found.recent, found.history, found.anchor):
        assert list(ids) == sorted(set(ids))
        assert set(ids) <= known - set(why(found))
    assert set(found.recent) <= set(found.history)
    if found.held:
        assert set(found.recent) <= set(found.decision.run_ids)
    else:
        assert len(found.recent) <= RECENT
        assert len(found.recent) == min(RECENT, len(known - set(why(found))))


@given(NIGHTS)
def test_a_night_more_never_moves_the_anchor(earlier):
    """Once the anchor is full, nights that follow leave it where it stands."""
    before = baseline(night(98), earlier, ()).anchor
    after = baseline(night(99), [*earlier, night(98)], ()).anchor
    assert after[: len(before)] == before
    assert len(before) < RECENT or after == before


# As a file


NAMES = st.text(min_size=1, max_size=8)


@st.composite
def baselines(draw):
    cases = draw(st.lists(st.tuples(NAMES, NAMES), unique=True, min_size=1, max_size=4))
    row = st.text("10-", min_size=len(cases), max_size=len(cases))
    rows = draw(st.lists(st.lists(row, min_size=1, max_size=3).map(tuple), min_size=1, max_size=4))
    of = tuple(
        Night(number, at(number), True, SYSTEM, len(told) > 1)
        for number, told in zip(range(-len(rows), 0), rows, strict=True)
    )
    pins = draw(st.lists(st.sampled_from([one.run_id for one in of]), unique=True, max_size=2))
    return Carried(
        *(draw(NAMES) for _ in range(3)),
        {"packages": {draw(NAMES): "1"}},
        tuple(cases),
        of,
        tuple(rows),
        (decision("pin", *sorted(pins)),) if pins else (),
        {name: at(9) for name, _ in cases[:1]},
        frozenset(draw(st.lists(NAMES, max_size=2))),
    )


@given(baselines())
def test_a_file_gives_back_what_was_written(carried):
    """What was written is read again, whatever its names are, with the hash of its content."""
    found = portable.read(portable.written(carried))
    assert found._replace(hash="") == carried
    assert list(found.answers) == list(carried.answers)


@given(baselines(), st.data())
def test_a_file_that_was_changed_is_refused(carried, data):
    """No answer, name or date of a file can be another without its being noticed."""
    content = json.loads(portable.written(carried))
    name = data.draw(st.sampled_from(sorted(content.keys() - {"hash"})))
    changed = {**content, name: [content[name], "changed"]}
    with pytest.raises(StoreError, match="was changed"):
        portable.read(json.dumps(changed))


def test_a_file_of_another_format():
    """A format of the future is refused by its number, and not misread."""
    content = json.loads(portable.written(Carried("s", "1", "b", {}, (), (), (), (), {}, frozenset())))
    del content["hash"]
    content["format"] = 99
    with pytest.raises(StoreError, match="of format 99; this memtrend reads 1"):
        portable.read(json.dumps({**content, "hash": portable._hash(content)}))


FILE = Carried(
    "s", "1", "b", {}, (("x", "h"),), (night(-1),), (("1",),), (decision("pin", -1),), {}, frozenset()
)
_NIGHT = {"at": "2026-03-01T03:00:00+00:00", "primed": False, "system": {}, "passes": ["1"]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"suite": 3}, "suite"),
        ({"cases": [["x"]]}, "cases.0"),
        ({"environment": None}, "environment"),
        ({"more": 1}, "more"),
        ({"nights": []}, "nights"),
        ({"nights": [{**_NIGHT, "at": "2026-03-01T03:00:00"}]}, "nights.0.at"),
        ({"nights": [{**_NIGHT, "passes": ["x"]}]}, "nights.0.passes.0"),
        ({"nights": [{**_NIGHT, "passes": ["10"]}]}, "another length"),
        ({"nights": [{**_NIGHT, "at": "2027-03-01T03:00:00Z"}, _NIGHT]}, "not in order"),
        (
            {"decisions": [{"action": "pin", "nights": [7], "reason": "", "author": "", "at": _NIGHT["at"]}]},
            "not there",
        ),
        ({"decisions": [{"action": "reset"}]}, "decisions.0.action"),
        ({"quarantined": {"x": "soon"}}, "quarantined.x"),
    ],
)
def test_a_right_hash_on_wrong_content(changed, said):
    """A hash that fits makes no baseline of what is none: it is refused, and where it is wrong is said."""
    content = {**json.loads(portable.written(FILE)), **changed}
    del content["hash"]
    with pytest.raises(StoreError, match="no baseline file") as refused:
        portable.read(json.dumps({**content, "hash": portable._hash(content)}))
    assert said in str(refused.value)


def test_a_hash_alone_is_no_baseline():
    """A file of the right format and hash, in which nothing else stands, is refused."""
    content = {"format": portable.FORMAT}
    with pytest.raises(StoreError, match="no baseline file"):
        portable.read(json.dumps({**content, "hash": portable._hash(content)}))


def test_answers_that_are_none_are_no_failures():
    """A dash is no answer: it is neither a pass nor a loss."""
    rows = (("1-0",),)
    carried = Carried(
        "s", "1", "b", {}, tuple((name, "h") for name in "xyz"), (night(-1),), rows, (), {}, frozenset()
    )
    assert [(one.name, one.value) for one in carried.answers] == [("x", 1.0), ("z", 0.0)]
