"""May B replace A: what is compared, how it is counted, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from store import comparison_words, queries, shapes, writes
from store.comparing import foreseen
from store.comparisons import Comparison
from store.queries import COMPARED, NothingToCompare
from store.records import CaseRecord, SuiteRecord
from store.sides import side
from store.stats.comparisons import paired_difference
from tests.store.seeding import START, Seed, outcome, scenario

TRIALS = 4


class Pair:
    """Two backends, asked the same cases four times each, of `of` conversations. `lost`: case -> how many of
    its trials fail; `errors`: those that fail all, or case -> how many of its last trials do."""

    def __init__(self, seed: Seed, n: int, critical: Collection[str] = (), of: int = 0) -> None:
        self.seed, self.cases = seed, [f"case-{i:03d}" for i in range(n)]
        records = tuple(
            CaseRecord(
                name,
                "1",
                f"what of {name}?",
                tags=("all", *(["few"] if i < 5 else [])),
                critical=name in critical,
                cluster=f"talk-{i % of}" if of else None,
            )
            for i, name in enumerate(self.cases)
        )
        self.suite = writes.register_suite(seed.db, SuiteRecord("golden", "golden", "own", "v1", 7, records))

    def run(
        self,
        backend: str,
        lost: Mapping[str, int] = {},
        *,
        trials: int = TRIALS,
        errors: Collection[str] | Mapping[str, int] = (),
        skipped: Collection[str] = (),
        latency_ms: float = 2.0,
        cases: Sequence[str] | None = None,
    ) -> int:
        run_id, token = self.seed.open(self.suite, backend, trials=trials, subset=COMPARED)
        for trial in range(1, trials + 1):
            answers = [
                self._answer(name, trial, lost.get(name, 0), errors, skipped, latency_ms)
                for name in cases or self.cases
            ]
            writes.save_scenario(self.seed.db, run_id, scenario(answers, trial=trial), token)
        self.seed.close(run_id, token, backend, "whole", START)
        return run_id

    @staticmethod
    def _answer(name, trial, failing, errors, skipped, latency_ms):
        failed = errors.get(name, 0) if isinstance(errors, Mapping) else TRIALS * (name in errors)
        if trial > TRIALS - failed or name in skipped:
            return outcome(name, passed=None, trial=trial, status="error" if failed else "skipped")
        given = outcome(name, passed=trial > failing, trial=trial)
        return replace(given, latency_ms=latency_ms * (1 + int(name[-3:]) / 100))

    def compared(self, a: int, b: int, **options) -> Comparison:
        return queries.comparison(self.seed.db, "golden", (a,), (b,), **options)


@pytest.fixture
def pair(seed: Seed) -> Pair:
    return Pair(seed, 100)


def test_equal_sides_are_not_worse_where_there_are_cases_enough(pair):
    """A hundred cases that agree rule out a loss of three points; the interval is Newcombe's."""
    c = pair.compared(pair.run("old"), pair.run("new"))
    assert c.migration.verdict == "non_inferior"
    assert (c.lost, c.gained, c.cases) == ((), (), 100)
    assert c.migration.low > -0.03
    assert c.cannot_rule_out == pytest.approx(-c.migration.low)
    assert comparison_words.title(c) == "new can replace old on golden"
    assert "Not one of 100 cases turned" in comparison_words.sure(c)


def test_few_equal_cases_are_inconclusive_and_say_what_would_settle_it(seed):
    """Twenty cases cannot rule out three points, and that is known before anything is run."""
    few = Pair(seed, 20)
    a, b = few.run("old"), few.run("new")
    before = queries.foresight(seed.db, "golden", (a,), (b,), 0.03)
    assert (before.can_conclude, before.enough) == (False, 88)
    assert "cannot settle" in comparison_words.foresight(before)[0]
    c = few.compared(a, b)
    assert c.migration.verdict == "inconclusive"
    assert c.migration.needed == 88
    assert comparison_words.settle(c).startswith("88 cases like these would settle")
    assert few.compared(a, b, margin=before.smallest_margin + 0.001).migration.verdict == "non_inferior"


def test_what_fails_for_sure_is_lost_by_name(pair):
    """Three of four trials are sure; two of four are not; the other way round it is gained."""
    c = pair.compared(
        pair.run("old", {"case-090": 4}), pair.run("new", {"case-001": 4, "case-002": 3, "case-003": 2})
    )
    told = {one.case: (one.confirmed, one.a_passes, one.b_passes) for one in c.lost}
    assert told == {"case-001": (True, 4, 0), "case-002": (True, 4, 1), "case-003": (False, 4, 2)}
    assert [one.case for one in c.gained] == ["case-090"]
    assert {one.failure for one in c.lost} == {"not stored"}


def test_many_losses_make_it_worse(pair):
    """Where the whole interval lies below the margin; the title says how many would be lost."""
    lost = dict.fromkeys(pair.cases[:12], 4)
    c = pair.compared(pair.run("old"), pair.run("new", lost))
    assert c.migration.verdict == "inferior"
    assert comparison_words.title(c) == "new is worse than old on golden: 12 all cases would be lost"
    assert pair.compared(pair.run("older", lost), pair.run("newer")).migration.verdict == "better"


def test_a_critical_case_decides_alone(seed):
    """One critical case confirmed lost outweighs a mean that is well within the margin."""
    own = Pair(seed, 100, critical=["case-050"])
    a = own.run("old", {"case-001": 4, "case-002": 4})
    c = own.compared(a, own.run("new", {"case-050": 4}))
    assert c.migration.difference > 0
    assert c.migration.verdict == "inferior"
    assert "case-050" in comparison_words.evidence(c)
    assert own.compared(a, own.run("newer", {"case-050": 2})).migration.verdict != "inferior"


@pytest.mark.parametrize(
    "of_b",
    [
        {"lost": {"case-050": 2}},
        {"lost": {"case-050": 1}, "trials": 1},
        {"errors": ["case-050"]},
        {"cases": [f"case-{i:03d}" for i in range(500) if i != 50]},
    ],
    ids=["now and then", "one trial", "no answer", "not asked"],
)
def test_while_a_critical_case_is_open_nothing_is_called_as_good(seed, of_b):
    """Neither kept nor lost for sure, it withholds the word, and title and sentence say so; asked again and
    passed, it is over."""
    own = Pair(seed, 500, critical=["case-050", "case-000", "case-001", "case-002", "case-003", "case-004"])
    a = own.run("old")
    c = own.compared(a, own.run("new", **of_b))
    assert c.migration.low > -0.03
    assert (c.migration.verdict, c.open, c.migration.needed) == ("inconclusive", ("case-050",), None)
    assert comparison_words.title(c) == (
        "Cannot tell yet whether new can replace old on golden: 1 critical case is in doubt"
    )
    assert "case-050" in comparison_words.evidence(c)
    assert "again" in comparison_words.settle(c)
    assert own.compared(a, own.run("newer")).migration.verdict == "non_inferior"


def test_three_losses_and_an_error_are_a_loss(seed):
    """Three of four trials are enough: an error is no pass that could save it."""
    own = Pair(seed, 500, critical=[f"case-{i:03d}" for i in range(5)])
    c = own.compared(own.run("old"), own.run("new", {"case-001": 3}, errors={"case-001": 1}))
    assert [(one.case, one.confirmed) for one in c.lost] == [("case-001", True)]
    assert c.migration.verdict == "inferior"
    assert {row.tag: row.word for row in c.tags}["few"] == "lost"


def test_a_tag_with_an_open_critical_case_did_not_hold(seed):
    """Also one that a case is missing of did not: what was not answered, nobody held."""
    own = Pair(seed, 500, critical=[f"case-{i:03d}" for i in range(5)])
    a = own.run("old")
    words = {
        name: {row.tag: row.word for row in own.compared(a, own.run(name, **of_b)).tags}["few"]
        for name, of_b in (
            ("wavers", {"lost": {"case-001": 2}}),
            ("silent", {"errors": ["case-001"]}),
            ("unable", {"skipped": ["case-001"]}),
        )
    }
    assert words == {"wavers": "open", "silent": "open", "unable": "no_confirmed_loss"}


def test_what_was_not_answered_is_said_and_may_be_too_much(seed):
    """Ten errors of 120 would be too much, were they losses, so they withhold the word; one error in a trial
    would not; both are counted aloud."""
    own = Pair(seed, 200)
    a = own.run("old")
    many = own.compared(a, own.run("many", errors=own.cases[:20]))
    assert (many.cases, many.migration.verdict) == (180, "inconclusive")
    assert "did not answer" in comparison_words.evidence(many)
    assert "20 cases got no answer from many" in many.warnings
    few = own.compared(a, own.run("few", errors={"case-007": 1}))
    assert few.migration.verdict == "non_inferior"
    assert "1 case none in some of the trials on few" in few.warnings
    assert own.compared(own.run("older", errors=own.cases[:20]), a).migration.verdict != "inconclusive"


def test_critical_cases_that_do_not_apply_are_named(seed):
    """What a backend cannot do is no doubt about it, and no secret."""
    own = Pair(seed, 200, critical=["case-009"])
    c = own.compared(own.run("old"), own.run("new", skipped=["case-009"]))
    assert c.migration.verdict == "non_inferior"
    assert "Critical and not compared, since it does not apply to new: case-009" in c.warnings


def test_conversations_are_what_is_counted(seed):
    """Five hundred cases of twenty conversations conclude no more before than after: both say so."""
    own = Pair(seed, 500, of=20)
    a, b = own.run("old"), own.run("new")
    before = queries.foresight(seed.db, "golden", (a,), (b,), 0.03)
    after = own.compared(a, b)
    assert (before.can_conclude, before.clusters) == (False, 20)
    assert after.migration.verdict == "inconclusive"
    assert before.smallest_margin == pytest.approx(-after.migration.low, abs=0.001)
    assert "20 conversations" in comparison_words.foresight(before)[0]


def test_each_run_has_one_of_the_other_side_beside_it(seed):
    """Nights of both sides are one window; a run that is alone for days is told, and by how many."""
    own = Pair(seed, 100)
    for backend, days in (("old", (0, 1)), ("new", (0, 1)), ("newer", (0, 9))):
        for day in days:
            seed.at(own.run(backend, trials=2), START + timedelta(days=day))
    ids = {
        name: tuple(row.id for row in queries.side_runs(seed.db, "golden", side(name)))
        for name in ("old", "new", "newer")
    }
    together = queries.comparison(seed.db, "golden", ids["old"], ids["new"])
    apart = queries.comparison(seed.db, "golden", ids["old"], ids["newer"])
    assert together.warnings == ()
    assert [line for line in apart.warnings if "up to 8 days apart" in line]


def test_a_margin_that_would_have_been_met_is_met(seed):
    """The margin that is offered, asked for, concludes."""
    few = Pair(seed, 40)
    a, b = few.run("old"), few.run("new", {"case-001": 2})
    told = comparison_words.settle(few.compared(a, b))
    offered = float(re.search(r"a margin of ([\d.]+) points would have been met", told)[1])
    assert few.compared(a, b, margin=offered / 100).migration.verdict == "non_inferior"


def test_small_tags_get_names_and_no_verdict(pair):
    """Of ninety cases and more a verdict is asked; of fewer, what was lost is named."""
    c = pair.compared(pair.run("old"), pair.run("new", {"case-001": 4}))
    tags = {row.tag: row for row in c.tags}
    assert [row.tag for row in c.tags] == ["all", "few"]
    assert (tags["few"].n, tags["few"].word, tags["few"].lost) == (5, "lost", ("case-001",))
    assert tags["all"].word in ("non_inferior", "inconclusive")
    unchanged = pair.compared(pair.run("old2"), pair.run("new2", {"case-099": 4}))
    assert {row.tag: row.word for row in unchanged.tags}["few"] == "no_confirmed_loss"


def test_a_tag_of_critical_cases_held(seed):
    """Where each case of a small tag is critical and none is lost, all held."""
    own = Pair(seed, 100, critical=[f"case-{i:03d}" for i in range(5)])
    c = own.compared(own.run("old"), own.run("new"))
    assert {row.tag: row.word for row in c.tags}["few"] == "held"


def test_what_is_not_compared_is_counted_aloud(pair):
    """Errors, what does not apply, and what one side was not asked are dropped from both, each by name."""
    a = pair.run("old", errors=["case-001"])
    c = pair.compared(a, pair.run("new", skipped=["case-002"], cases=pair.cases[:99]))
    assert c.cases == 97
    assert dict(c.dropped) == {
        "case-001": "got no answer from old",
        "case-002": "does not apply to new",
        "case-099": "was not asked of new",
    }
    assert sorted(comparison_words.dropped(c)) == [
        "1 case: does not apply to new (case-002)",
        "1 case: got no answer from old (case-001)",
        "1 case: was not asked of new (case-099)",
    ]


def test_an_edited_case_is_another_question(seed, pair):
    """A case whose text changed between the two is dropped, once and by name."""
    a = pair.run("old")
    records = tuple(
        CaseRecord(name, "2" if name == "case-007" else "1", "what?", tags=("all",)) for name in pair.cases
    )
    pair.suite = writes.register_suite(seed.db, SuiteRecord("golden", "golden", "own", "v2", 7, records))
    c = pair.compared(a, pair.run("new"))
    assert dict(c.dropped) == {"case-007": "was changed between the two"}
    assert "The sides are of more than one suite version" in c.warnings


def test_one_trial_confirms_nothing(pair):
    """A single failure may be chance: it is shown, unconfirmed, and the comparison says so."""
    c = pair.compared(pair.run("old", trials=1), pair.run("new", {"case-001": 1}, trials=1))
    assert [(one.case, one.confirmed) for one in c.lost] == [("case-001", False)]
    assert any("4 trials a side" in line for line in c.warnings)
    assert "chance" in comparison_words.sure(c)


def test_figures_are_those_of_the_statistics(pair):
    """The interval is `paired_difference` of the cases' means at 90 %, and the latency ratio is exact."""
    rng = np.random.default_rng(3)
    lost_a = {name: int(rng.integers(0, 4)) for name in pair.cases[:40]}
    lost_b = {name: int(rng.integers(0, 5)) for name in pair.cases[20:80]}
    c = pair.compared(pair.run("old", lost_a, latency_ms=100.0), pair.run("new", lost_b, latency_ms=50.0))
    before = np.array([1 - lost_a.get(name, 0) / 4 for name in pair.cases])
    after = np.array([1 - lost_b.get(name, 0) / 4 for name in pair.cases])
    expected = paired_difference(before, after, level=0.9)
    assert (c.migration.low, c.migration.high) == (expected.low, expected.high)
    times = {row.what: row for row in c.ratios}
    assert times["recall_ms_median"].ratio == pytest.approx(0.5)
    assert times["recall_ms_p95"].low == pytest.approx(0.5)
    assert times["money_per_1000"].a == pytest.approx(1000 * 4 * 0.5 / 400)


def test_lower_is_better_is_turned(pair):
    """A metric row says by how much B is better, whichever way is better for it."""
    c = pair.compared(pair.run("old"), pair.run("new", dict.fromkeys(pair.cases[:30], 4)))
    recall = next(row for row in c.metrics if row.metric == "recall@k")
    assert recall.better_by == pytest.approx(-0.15)
    assert comparison_words.metric_word(recall) == "worse"


def test_floors_and_dense_are_lines_on_the_same_cases(pair, seed):
    """The newest whole run of each, over the cases that are compared."""
    floor, token = seed.open(pair.suite, "nothing")
    answers = [outcome(name, passed=name == "case-000") for name in pair.cases]
    writes.save_scenario(seed.db, floor, scenario(answers), token)
    seed.close(floor, token, "nothing", "whole", START)
    c = pair.compared(pair.run("old", errors=["case-001"]), pair.run("new"))
    (line,) = c.references
    assert (line.name, line.kind, line.n, line.run_id) == ("nothing", "floor", 99, floor)
    assert line.rate == pytest.approx(1 / 99)


def test_texts_come_only_when_asked_for(pair):
    """The answers are texts of memories: they stand in no comparison that did not ask, and in no JSON."""
    a, b = pair.run("old"), pair.run("new", {"case-001": 4})
    assert pair.compared(a, b).lost[0].a_hit is None
    told = pair.compared(a, b, with_texts=True)
    assert told.lost[0].a_hit == "first for case-001"
    assert "first for" not in str(shapes.comparison(told))


def test_swapped_sides_mirror(pair):
    """What B loses to A, A gains over B, with the interval turned round."""
    a, b = pair.run("old", {"case-001": 4}), pair.run("new", dict.fromkeys(pair.cases[10:22], 4))
    one, other = pair.compared(a, b), pair.compared(b, a)
    assert [case.case for case in one.lost] == [case.case for case in other.gained]
    assert one.migration.low == pytest.approx(-other.migration.high)


def test_json_has_what_scripts_rely_on(pair):
    """The keys of the fixed shape, with the confirmed cases by name."""
    told = shapes.comparison(pair.compared(pair.run("old"), pair.run("new", {"case-001": 4})))
    fixed = {
        "verdict",
        "provisional",
        "evidence",
        "interval",
        "blind_spot",
        "lost",
        "gained",
        "suspects",
        "tags",
    }
    assert fixed <= told.keys()
    assert told["lost"] == ["case-001"]


def test_nothing_in_common_is_no_answer(pair, seed):
    """Two sides that share no answered case are inconclusive, and say that nothing was compared."""
    c = pair.compared(pair.run("old", errors=pair.cases), pair.run("new"))
    assert (c.cases, c.migration.verdict) == (0, "inconclusive")
    assert "no interval" in comparison_words.evidence(c)
    with pytest.raises(NothingToCompare):
        queries.comparison(seed.db, "golden", (), (1,))


def test_foresight_knows_the_published_numbers():
    """88 cases settle three points where none is lost, 687 where a tenth comes out differently."""
    told = foreseen(88, 0.03)
    assert (told.enough, told.likely, told.can_conclude) == (88, 687, True)
    assert foreseen(30, 0.03).smallest_margin == pytest.approx(0.083, abs=0.001)


def test_words_of_every_verdict(pair):
    """Each verdict has a title, a badge and a sentence of its own."""
    c = pair.compared(pair.run("old"), pair.run("new"))
    said = set()
    for verdict in ("better", "non_inferior", "inferior", "inconclusive"):
        one = c._replace(migration=replace_verdict(c, verdict))
        said.add((comparison_words.title(one), comparison_words.verdict(one), comparison_words.evidence(one)))
    assert len(said) == 4


def replace_verdict(c: Comparison, verdict: str):
    return c.migration._replace(verdict=verdict)
