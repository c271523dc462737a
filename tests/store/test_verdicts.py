"""A verdict: what is said of a run, held against its baseline, after one, two and three looks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from store.baselines import Night, baseline
from store.evidence import Verdict, drift_rollups, plain
from store.queries.verdicts import AnswerRow, AskedCase, PassRate, ValueRow, VerdictRecord
from store.verdicts import judge

START = datetime(2026, 3, 1, 3, tzinfo=UTC)
TONIGHT = 1000
CASES = 24
Row = Sequence[float | None]


def row(*lost: int, cases: int = CASES) -> list[float | None]:
    """Every case passes but these."""
    return [float(case not in lost) for case in range(cases)]


GOOD = [row()] * 10
"""Ten nights on which everything passed."""


def record(
    nights: Sequence[Row],
    tonight: Row,
    *looks: Sequence[Row],
    accepted: Mapping[int, bool] | None = None,
    a_day: int = 1,
    values: Sequence[ValueRow] = (),
    **fields: Any,
) -> VerdictRecord:
    """Runs 1, 2, ... are the nights, `a_day` of them each day; a row holds 1, 0 or None for each case; looks
    hold a row for each trial. `accepted`: of nights that were not."""
    earlier = [
        Night(number, START + timedelta(days=(number - 1) // a_day), (accepted or {}).get(number, True))
        for number in range(1, len(nights) + 1)
    ]
    run = Night(TONIGHT, START + timedelta(days=500), accepted=True)
    trials = [(number, 1, told) for number, told in enumerate(nights, 1)] + [(TONIGHT, 1, tonight)]
    for number, look in enumerate(looks, TONIGHT + 1):
        trials += [(number, trial, told) for trial, told in enumerate(look, 1)]
    answers = [
        AnswerRow(run_id, case, trial, value)
        for run_id, trial, told in trials
        for case, value in enumerate(told)
    ]
    made = VerdictRecord(
        TONIGHT, "golden", "mine", cases(len(tonight)), tuple(range(TONIGHT + 1, TONIGHT + 1 + len(looks))),
        baseline(run, earlier, ()), answers, list(values), None, [], frozenset(),
    )  # fmt: skip
    return made._replace(**fields)


def cases(number: int, **of: Mapping[int, Any]) -> tuple[AskedCase, ...]:
    """`of`: a field's values by the case's number."""
    usual: dict[str, Any] = {"tags": (), "critical": False, "cluster": None, "quarantined": False}
    return tuple(
        AskedCase(
            case,
            f"case-{case:02}",
            **{name: of.get(name, {}).get(case, value) for name, value in usual.items()},
        )
        for case in range(number)
    )


def said(verdict: Verdict) -> tuple[str, str]:
    return verdict.verdict, verdict.stage


def as_json(verdict: Verdict) -> str:
    return json.dumps(plain(verdict), allow_nan=False, sort_keys=True)


# The looks


def test_a_first_run_cannot_be_judged():
    """Of the first run of a series nothing is told, with the reason, and the baseline begins with it."""
    verdict = judge(record([], row(1, 2, 3)))
    assert said(verdict) == ("cannot_tell", "")
    assert (verdict.reason, verdict.accepted, verdict.looks) == ("the first run of this series", True, ())
    assert not verdict.wants_a_look


def test_an_unchanged_run_joins_the_baseline():
    """A run like all others is unchanged and accepted, and says what loss could have gone unseen."""
    verdict = judge(record(GOOD, row()))
    assert said(verdict) == ("unchanged", "")
    assert verdict.accepted
    assert 0 < verdict.blind_spot < 0.5
    assert (verdict.lost, verdict.gained, verdict.difference.new) == ((), (), 1)


def test_a_loss_is_suspected_then_confirmed():
    """Cases lost in all looks are a suspicion after one, suspected after two and confirmed after three, and
    no such run is accepted."""
    tonight, look = row(3, 5, 8), [row(3, 5, 8)] * 3
    verdicts = [judge(record(GOOD, tonight, *[look] * looks)) for looks in range(3)]
    assert [said(one) for one in verdicts] == [
        ("cannot_tell", "suspicion"),
        ("worse", "suspected"),
        ("worse", "confirmed"),
    ]
    assert [one.wants_a_look for one in verdicts] == [True, False, False]
    assert not any(one.accepted for one in verdicts)
    assert verdicts[-1].lost == ("case-03", "case-05", "case-08")
    assert [look.trials for look in verdicts[-1].looks] == [1, 3, 3]
    assert all(0 < look.p_worse <= 0.05 < look.p_better for look in verdicts[-1].looks)
    assert verdicts[-1].difference.new == pytest.approx(1 - 3 / CASES)


@pytest.mark.parametrize("agreeing", [0, 1])
def test_a_suspicion_that_dies_joins_the_baseline(agreeing):
    """When a later look finds nothing, the run is unchanged and accepted, and all looks are kept."""
    lost = [row(3, 5, 8)] * 3
    verdict = judge(record(GOOD, row(3, 5, 8), *[lost] * agreeing, [row()] * 3))
    assert said(verdict) == ("unchanged", "")
    assert verdict.accepted
    assert len(verdict.looks) == 2 + agreeing
    assert verdict.looks[0].p_worse <= 0.05


def test_a_fourth_look_changes_nothing_that_is_confirmed():
    """Looks beyond the third are kept with the evidence."""
    verdict = judge(record(GOOD, row(1, 2, 3), *[[row(1, 2, 3)] * 3] * 3))
    assert (said(verdict), len(verdict.looks)) == (("worse", "confirmed"), 4)


def test_better_is_the_mirror_of_worse():
    """With passes and failures swapped, worse becomes better, and is accepted once it is sure."""

    def swapped(rows: Sequence[Row]) -> list[Row]:
        return [[None if value is None else 1 - value for value in one] for one in rows]

    tonight, look = row(3, 5, 8), [row(3, 5, 8)] * 3
    for looks in range(3):
        worse = judge(record(GOOD, tonight, *[look] * looks))
        better = judge(record(swapped(GOOD), swapped([tonight])[0], *[swapped(look)] * looks))
        assert [one.p_better for one in better.looks] == [one.p_worse for one in worse.looks]
        assert (better.gained, better.stage) == (worse.lost, worse.stage)
        assert better.verdict == ("better" if looks else "cannot_tell")
        assert better.accepted is bool(looks)


def test_a_deterministic_backend_needs_no_test():
    """One case lost is no news where answers vary, and certain at the look more where they repeat."""
    verdict = judge(record(GOOD, row(7)))
    assert said(verdict) == ("unchanged", "")
    assert said(judge(record(GOOD, row(7)), deterministic=True)) == ("cannot_tell", "suspicion")
    looked = judge(record(GOOD, row(7), [row(7)] * 3), deterministic=True)
    assert (said(looked), looked.lost) == (("worse", "confirmed"), ("case-07",))
    assert looked.deterministic


def test_a_backend_that_only_calls_itself_deterministic_is_tested():
    """Repeats that differ give the lie to the declaration, and the noise is weighed as for any other."""
    verdict = judge(record([*GOOD[1:], row(2)], row(7)), deterministic=True)
    assert (said(verdict), verdict.deterministic) == (("unchanged", ""), False)


def test_a_critical_case_is_told_at_once():
    """A critical case lost in three of four trials is confirmed by the look at once; in two of four, or not
    critical, it is no news by itself."""
    critical = cases(CASES, critical={4: True})
    look = [row(4), row(), row(4)]
    assert said(judge(record(GOOD, row(4), cases=critical))) == ("cannot_tell", "suspicion")
    verdict = judge(record(GOOD, row(4), look, cases=critical))
    assert (said(verdict), verdict.critical) == (("worse", "confirmed"), ("case-04",))
    assert said(judge(record(GOOD, row(4), [row(4), row(), row()], cases=critical))) == ("unchanged", "")
    assert said(judge(record(GOOD, row(4), look))) == ("unchanged", "")


# What is compared with what


@pytest.mark.parametrize(("nights", "a_day", "provisional"), [(4, 1, True), (5, 1, False), (10, 3, True)])
def test_a_verdict_is_provisional_until_five_days(nights, a_day, provisional):
    """It takes five distinct days, however many runs there were on them."""
    assert judge(record(GOOD[:nights], row(), a_day=a_day)).provisional is provisional


@pytest.mark.parametrize("quarantined", [True, False])
def test_a_case_in_quarantine_decides_nothing(quarantined):
    """The loss of quarantined cases is no news; of the same cases released, it is."""
    kept = cases(CASES, quarantined=dict.fromkeys((3, 5, 8), quarantined))
    verdict = judge(record(GOOD, row(3, 5, 8), cases=kept))
    assert said(verdict) == (("unchanged", "") if quarantined else ("cannot_tell", "suspicion"))
    assert verdict.cases == CASES - 3 * quarantined
    assert bool(verdict.lost) is not quarantined


def test_a_case_on_trial_decides_nothing():
    """Cases that never came out the same five times in a row yet are no news when they are lost."""
    new = [[*row()[:20], *([None] * 4 if night < 6 else [1.0] * 4)] for night in range(10)]
    verdict = judge(record(new, row(20, 21, 22, 23)))
    assert (said(verdict), verdict.cases, verdict.lost) == (("unchanged", ""), 20, ())


def test_a_changed_case_begins_anew():
    """A case whose text changed has no history; the rest is compared all the same."""
    history = [[None, None, *row()[2:]]] * 10
    verdict = judge(record(history, row(0, 1)))
    assert (said(verdict), verdict.cases, verdict.difference.n) == (("unchanged", ""), CASES - 2, CASES - 2)
    assert said(judge(record(history, row(0, 1, 5, 6, 7)))) == ("cannot_tell", "suspicion")


def test_a_suite_mostly_new_is_a_series_of_its_own():
    """With less than half of its cases known, nothing is told, with the reason; the run is accepted."""
    history = [[*row()[:11], *[None] * 13]] * 10
    verdict = judge(record(history, row(3, 5, 8)))
    assert said(verdict) == ("cannot_tell", "")
    assert verdict.reason == f"11 of {CASES} cases are known to the baseline: a series of its own"
    assert verdict.accepted
    assert not verdict.wants_a_look


def test_a_run_that_was_not_accepted_stands_in_no_baseline():
    """After nights that were worse, the next one is still held against the last good ones."""
    history = [*GOOD, *[row(3, 5, 8)] * 3]
    refused = dict.fromkeys((11, 12, 13), False)
    verdict = judge(record(history, row(3, 5, 8), accepted=refused))
    assert said(verdict) == ("cannot_tell", "suspicion")
    assert verdict.baseline == tuple(range(1, 11))
    assert said(judge(record(history, row(3, 5, 8)))) != ("cannot_tell", "suspicion")


def test_a_slow_leak_does_not_become_normal():
    """A run like the last nights but behind the anchor is unchanged, yet not accepted; its drift is told."""
    leaking = [row(*range(lost), cases=CASES) for lost in (0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5)]
    verdict = judge(record([*GOOD, *leaking], row(0, 1, 2, 3, 4)))
    assert (verdict.verdict, verdict.accepted) == ("unchanged", False)
    assert verdict.drift == pytest.approx(-5 / CASES)
    assert [(one.metric, one.mean, one.n) for one in drift_rollups(verdict)] == [
        ("anchor_drift", verdict.drift, CASES)
    ]


def test_no_drift_without_an_anchor():
    """A first run has come from nowhere, so no point of the drift is drawn."""
    assert drift_rollups(judge(record([], row()))) == []


# Slow leaks

LEVELS = [*[90.0] * 20, *[78.0] * 12]


def series(passed: Sequence[float]) -> list[PassRate]:
    """Of 100 cases; the newest is tonight's and not among them."""
    return [PassRate(number, told, 100) for number, told in enumerate(passed, 1)]


def tonight_at(passed: int) -> list[float | None]:
    return [float(case < passed) for case in range(100)]


def leaky(reported: frozenset[int] = frozenset()) -> Verdict:
    held = [tonight_at(78)] * 10
    return judge(record(held, tonight_at(78), series=series(LEVELS), reported=reported))


def test_a_leak_is_found_in_the_series():
    """A step that no night shows by itself is told as a slow leak from its first run, and not accepted."""
    verdict = leaky()
    assert (said(verdict), verdict.accepted) == (("worse", "leak"), False)
    assert verdict.leak.new
    assert abs(verdict.leak.first_bad - 21) <= 1
    assert verdict.leak.before > 0.88 > 0.80 > verdict.leak.after


def test_a_leak_is_told_once_and_carried():
    """A leak that was reported stands until the level comes up again: worse, not new, and in no baseline."""
    verdict = leaky(frozenset({21}))
    assert (said(verdict), verdict.accepted) == (("worse", "leak"), False)
    assert (verdict.leak.new, verdict.leak.first_bad) == (False, 21)
    assert (verdict.leak.before, verdict.leak.after) == (pytest.approx(0.9), pytest.approx(0.78))


def test_a_leak_that_is_over_is_dropped():
    """Once the pass rate is back where it was, the leak is no part of the verdict."""
    back = series([90.0] * 20 + [78.0] * 10 + [90.0] * 15)
    verdict = judge(record([tonight_at(90)] * 10, tonight_at(90), series=back, reported=frozenset({21})))
    assert (said(verdict), verdict.leak) == (("unchanged", ""), None)


def test_a_leak_at_the_first_point_of_a_series_is_no_leak():
    """Where a series begins with the reported run nothing is before it, and no NaN is in the evidence."""
    short = series([78.0] * 6 + [60.0] * 12)
    verdict = judge(record([tonight_at(60)] * 10, tonight_at(60), series=short, reported=frozenset({1})))
    assert "NaN" not in as_json(verdict)


def test_what_was_gained_does_not_make_a_loss():
    """A backend that clearly got better is not called worse for the flaky case that failed beside it."""
    failing = range(8)
    nights = [row(*failing) for _ in range(10)]
    verdict = judge(record(nights, row(20), [row(), row(), row(20)]))
    assert said(verdict) == ("better", "confirmed") or said(verdict) == ("better", "suspected")


def test_a_loss_is_no_bargain_on_a_deterministic_backend():
    """However many cases were gained, one that was lost for sure is a change for the worse."""
    nights = [row(1, 2, 3) for _ in range(10)]
    verdict = judge(record(nights, row(9), [row(9)] * 3), deterministic=True)
    assert said(verdict) == ("worse", "confirmed")
    assert not verdict.accepted


def test_a_leak_whose_evidence_fades_is_dropped():
    """A reported date that the series no longer bears out is no part of the verdict."""
    steady = series([90.0] * 32)
    verdict = judge(record([tonight_at(90)] * 10, tonight_at(90), series=steady, reported=frozenset({21})))
    assert (said(verdict), verdict.leak) == (("unchanged", ""), None)


def test_an_upward_step_is_no_leak():
    """What got better in the series is no leak."""
    upward = series(LEVELS[::-1])
    verdict = judge(record([tonight_at(90)] * 10, tonight_at(90), series=upward))
    assert verdict.leak is None


# Beside the pass rate


def test_dense_is_beaten_tag_by_tag():
    """Is a plain vector store beaten: yes, no or cannot tell, for each tag by itself."""
    tags = {case: ("wins",) if case < 10 else ("loses",) if case < 20 else ("few",) for case in range(CASES)}
    dense = {case: float(10 <= case < 20) for case in range(CASES)}
    tonight = row(*range(10, 20))
    verdict = judge(record([tonight] * 10, tonight, cases=cases(CASES, tags=tags), dense=dense))
    assert verdict.beats_dense == {"": "cannot tell", "few": "cannot tell", "loses": "no", "wins": "yes"}
    assert judge(record(GOOD, row())).beats_dense == {}


# Whatever comes in

ANSWERS = some.sampled_from([1.0, 1.0, 1.0, 0.0, None])


@some.composite
def records(draw: some.DrawFn) -> VerdictRecord:
    """Anything that a record may hold: few cases or none, gaps, errors, odd values, any number of looks."""
    number = draw(some.integers(0, 6))
    told = some.lists(ANSWERS, min_size=number, max_size=number)
    nights, tonight = draw(some.lists(told, max_size=7)), draw(told)
    looks = draw(some.lists(some.lists(told, max_size=2), max_size=3))
    values = draw(some.lists(some.builds(
        ValueRow, some.integers(1, 7) | some.just(TONIGHT), some.integers(0, 6), some.just(1),
        some.sampled_from(["recall_ms", "returned_n", "ndcg@k", "returned_tokens", "money"]),
        some.floats(0, 1e6),
    ), max_size=30))  # fmt: skip
    rates = draw(some.lists(some.integers(0, number or 1), max_size=20))
    flags = some.dictionaries(some.integers(0, 5), some.booleans())
    return record(
        nights, tonight, *looks, values=values,
        cases=cases(number, critical=draw(flags), quarantined=draw(flags)),
        series=[PassRate(n, passed, number) for n, passed in enumerate(rates, 1)],
        dense=draw(some.none() | some.dictionaries(some.integers(0, 6), some.sampled_from([0.0, 1.0]))),
        reported=frozenset(draw(some.sets(some.integers(1, 20), max_size=2))),
    )  # fmt: skip


@settings(max_examples=60)
@given(records(), some.booleans())
def test_what_is_missing_is_never_nan(made, deterministic):
    """Whatever is missing, the evidence is JSON without NaN, and says why where it says nothing."""
    verdict = judge(made, deterministic=deterministic)
    content = json.loads(as_json(verdict))
    assert content["verdict"] in ("better", "worse", "unchanged", "cannot_tell")
    if said(verdict) == ("cannot_tell", ""):
        assert verdict.reason
    assert not (verdict.accepted and verdict.stage == "suspicion")


def test_a_night_without_answers_is_not_judged_by_its_looks():
    """Where tonight's trial answered nothing, no look stands in for it, and the reason is told."""
    verdict = judge(record(GOOD, [None] * CASES, [row()] * 3))
    assert said(verdict) == ("cannot_tell", "")
    assert verdict.reason == "no case that decides was answered both now and before"


@pytest.mark.parametrize("looks", [0, 2])
def test_the_order_of_cases_changes_nothing(looks):
    """The same answers under other numbers get the same verdict, to the last digit."""
    noisy = [row(night % 5, 11 + night % 3) for night in range(10)]
    made = record(noisy, row(3, 5, 8, 20), *[[row(3, 5, 8, 20), row(3, 5, 8), row(3, 5, 20)]] * looks)
    order = [(7 * case) % CASES for case in range(CASES)]
    mixed = made._replace(
        cases=tuple(made.cases[case] for case in order),
        answers=sorted(made.answers, key=lambda answer: order.index(answer.case_id)),
    )
    assert in_order_of_names(judge(made)) == in_order_of_names(judge(mixed))


def in_order_of_names(verdict: Verdict) -> dict[str, Any]:
    """Cases are listed in the order of the record; all else is compared as it is."""
    content: dict[str, Any] = plain(verdict)
    assert content["lost"]
    return {name: sorted(value) if name in LISTED else value for name, value in content.items()}


LISTED = ("lost", "gained", "critical", "aside")


def test_a_verdict_is_the_same_twice():
    """Every draw is seeded, so that a verdict can be reached again from the record."""
    made = record(GOOD, row(3, 5, 8), [row(3, 5), row(3, 5, 8), row(5, 8)])
    assert as_json(judge(made)) == as_json(judge(made))
