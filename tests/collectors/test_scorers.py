"""What an answer is worth: by hand, against a plain reference, and whatever the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from collectors.backend import Hit, Observation
from collectors.scorers import SCORER_VERSION, SCORERS, Want, examine, holds, judge, score, wants
from collectors.suite import Expectation, Probe
from store.metrics import METRICS


def _asking(*expectations: Expectation, k: int = 3, abstain: bool = False) -> Probe:
    return Probe("case", "query", expectations, k=k, abstain=abstain)


def _hits(texts: str) -> tuple[Hit, ...]:
    """A hit for each word, whose id is the word too."""
    return tuple(Hit(word, word) for word in texts.split())


def _scores(probe: Probe, texts: str) -> dict[str, float]:
    return judge(probe, Observation(_hits(texts)))[1]


ANY = Expectation("any", ("red", "rouge"))
ALL = Expectation("all", ("red", "blue"))
IDS = Expectation("all", (), ("red", "blue"))
MIXED = Expectation("all", ("red",), ("blue",))
BAD = Expectation("unwanted", ("old",), ("stale",))
FIRST = Expectation("unwanted_first", ("old", "older"))

# By hand. 1/log2(rank + 1): 1, 0.6309, 0.5


@pytest.mark.parametrize(
    ("expectation", "texts", "passed", "recall", "precision", "mrr", "ndcg"),
    [
        (ANY, "red x y", 1, 1, 1 / 3, 1, 1),
        (ANY, "x rouge y", 1, 1, 1 / 3, 1 / 2, 0.6309),
        (ANY, "red rouge y", 1, 1, 2 / 3, 1, 1),  # one thing wanted: the second hit adds nothing
        (ANY, "x y z red", 0, 0, 0, 0, 0),
        (ANY, "", 0, 0, None, 0, 0),
        (ANY, "RED", 1, 1, 1, 1, 1),
        (ALL, "red blue x", 1, 1, 2 / 3, 1, 1),
        (ALL, "red x blue", 1, 1, 2 / 3, 1, 1.5 / 1.6309),
        (ALL, "x red y", 0, 1 / 2, 1 / 3, 1 / 2, 0.6309 / 1.6309),
        (ALL, "redblue", 1, 1, 1, 1, 1),  # one hit that says both is the best order there is
        (ALL, "x y z red blue", 0, 0, 0, 0, 0),
        (IDS, "blue red", 1, 1, 1, 1, 1),
        (IDS, "x y blue red", 0, 1 / 2, 1 / 3, 1 / 3, 0.5 / 1.6309),
        (MIXED, "red blue", 1, 1, 1, 1, 1),
        (MIXED, "red bluer", 0, 1 / 2, 1 / 2, 1, 1 / 1.6309),  # an id is no pattern
    ],
)
def test_ranked_metrics_by_hand(
    expectation: Expectation,
    texts: str,
    passed: float,
    recall: float,
    precision: float,
    mrr: float,
    ndcg: float,
):
    """Pass, recall, precision, reciprocal rank and nDCG are what one reckons on paper."""
    scores = _scores(_asking(expectation), texts)
    assert scores["pass"] == passed
    assert scores["recall@k"] == pytest.approx(recall)
    assert scores.get("precision@k") == (None if precision is None else pytest.approx(precision))
    assert scores["mrr"] == pytest.approx(mrr)
    assert scores["ndcg@k"] == pytest.approx(ndcg, abs=1e-4)


@pytest.mark.parametrize(
    ("texts", "passed", "unwanted"),
    [
        ("x y z", 1, 0),
        ("x old z", 0, 1 / 3),
        ("older stale old", 0, 1),
        ("x y z old", 1, 0),  # below k
        ("stale", 0, 1),
        ("", 1, 0),
    ],
)
def test_unwanted_is_the_share_of_the_first_k_that_is_forbidden(texts: str, passed: float, unwanted: float):
    """By pattern or by id, among the first k that came back; an empty answer holds nothing forbidden."""
    scores = _scores(_asking(BAD), texts)
    assert (scores["pass"], scores["unwanted"]) == (passed, pytest.approx(unwanted))


@pytest.mark.parametrize(
    ("texts", "passed", "first"), [("old x", 0, 1), ("x old", 1, 0), ("", 1, 0), ("older", 0, 1)]
)
def test_unwanted_first_looks_at_the_first_hit_alone(texts: str, passed: float, first: float):
    """What must not come first may come second."""
    scores = _scores(_asking(FIRST), texts)
    assert (scores["pass"], scores["unwanted_first"]) == (passed, first)


@pytest.mark.parametrize(
    ("expectation", "texts", "passed"),
    [
        (Expectation("only", ids=("red", "blue")), "blue red", True),
        (Expectation("only", ids=("red", "blue")), "red", False),
        (Expectation("only", ids=("red", "blue")), "red blue x", False),
        (Expectation("only", ids=("red", "blue")), "red blue red red x", False),  # of all that came back
        (Expectation("only", ids=("red",)), "red red", True),  # the set, not how often
        (Expectation("only"), "", True),
        (Expectation("only"), "x", False),
        (Expectation("at_most", n=2), "", True),
        (Expectation("at_most", n=2), "x y", True),
        (Expectation("at_most", n=2), "x y z", False),
        (Expectation("at_most", n=4), "x y z u v", False),  # k is 3: counted are all
        (Expectation("at_most", n=0), "", True),
        (Expectation("at_most", n=0), "x", False),
        (Expectation("exactly", n=4), "x y z u", True),
        (Expectation("exactly", n=4), "x y z", False),
        (Expectation("exactly", n=4), "x y z u v", False),
    ],
)
def test_sets_and_limits_count_all_that_came_back(expectation: Expectation, texts: str, passed: bool):
    """only, at_most and exactly are of the whole answer, whatever k was."""
    probe = _asking(expectation)
    assert holds(probe, examine(probe, _hits(texts)), expectation) is passed
    assert _scores(probe, texts)["pass"] == passed


def test_a_case_passes_when_all_it_expects_holds():
    """One expectation that fails loses the case, whichever it is."""
    together = _asking(ANY, BAD, FIRST, Expectation("at_most", n=3))
    assert _scores(together, "red x y")["pass"] == 1
    for lost in ("x y z", "red old x", "older red", "red x y z"):
        assert _scores(together, lost)["pass"] == 0


@pytest.mark.parametrize(("texts", "worth"), [("", 1), ("x", 0)])
def test_abstaining_is_returning_nothing(texts: str, worth: float):
    """Where nothing planted answers, an empty answer is the right one."""
    assert _scores(_asking(BAD, abstain=True), texts)["abstained"] == worth


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [
        ((), 0),
        (("It's 7.30, Zoë!",), 9),
        (("one two", "three"), 3),
        (("日本語 text", "…"), 3),
        ((" \n\t",), 0),
    ],
)
def test_returned_tokens_count_words_and_marks(texts: tuple[str, ...], tokens: int):
    """Words and punctuation marks of all hits, beyond k too, and no white space."""
    hits = tuple(Hit(str(n), text) for n, text in enumerate(texts))
    assert judge(_asking(ANY, k=1), Observation(hits))[1]["returned_tokens"] == tokens


# Not applicable


@pytest.mark.parametrize(
    ("probe", "apply"),
    [
        (_asking(BAD), {"unwanted"}),
        (_asking(FIRST), {"unwanted_first"}),
        (_asking(Expectation("at_most", n=2)), set()),
        (_asking(Expectation("only")), set()),
        (_asking(BAD, abstain=True), {"unwanted", "abstained"}),
        (
            _asking(ANY, BAD, FIRST),
            {"recall@k", "precision@k", "mrr", "ndcg@k", "unwanted", "unwanted_first"},
        ),
        (_asking(ANY), {"recall@k", "precision@k", "mrr", "ndcg@k"}),
        (_asking(Expectation("only", ids=("x",))), {"recall@k", "precision@k", "mrr", "ndcg@k"}),
    ],
)
def test_a_metric_that_does_not_apply_is_absent(probe: Probe, apply: set[str]):
    """Without a want there is no recall, without something forbidden no share of it; never a 0 instead."""
    assert _scores(probe, "x y").keys() == apply | {"pass", "returned_tokens"}


def test_the_scored_metrics_are_those_of_the_record():
    """Every metric that is scored from hits is known to the record, and the other way round."""
    assert list(SCORERS) == [metric.name for metric in METRICS.values() if metric.source == "hits"]


def test_the_scorers_have_a_version():
    """Scores are stored under a version, so that a new scorer can judge old answers."""
    assert SCORER_VERSION


# Wants and evidence


def test_what_is_wanted():
    """Each pattern of an all, each id, and an any group as one; the same thing twice counts once."""
    only = Expectation("only", ids=("blue", "green"))
    assert wants(_asking(ANY, MIXED, only, BAD, FIRST)) == (
        Want(("red", "rouge")),
        Want(("red",)),
        Want(id="blue"),
        Want(id="green"),
    )


def test_evidence_is_of_every_rank():
    """Each want has all ranks that match it, beyond k too, and each hit that is forbidden is named."""
    evidence = examine(_asking(ALL, BAD, FIRST, k=1), _hits("old red blue stale red"))
    assert evidence.found == ((1, 4), (2,))
    assert evidence.wanted == {1, 2, 4}
    assert evidence.unwanted == {0, 3}
    assert evidence.unwanted_first


def test_each_prohibition_holds_by_itself():
    """Of several expectations of a kind one is enough to forbid a hit; without any, nothing is forbidden."""
    old, stale = Expectation("unwanted", ("old",)), Expectation("unwanted", ids=("stale",))
    first, other = Expectation("unwanted_first", ("x",)), Expectation("unwanted_first", ("old",))
    evidence = examine(_asking(old, stale, first, other), _hits("old stale red"))
    assert (evidence.unwanted, evidence.unwanted_first) == ({0, 1}, True)
    allowed = examine(_asking(ANY), _hits("old stale red"))
    assert (allowed.unwanted, allowed.unwanted_first) == (frozenset(), False)


# Whatever the answer

WORDS = ["red", "rouge", "blue", "redblue", "old", "stale", "x", "y"]
ANSWERS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
RANKED = st.lists(st.sampled_from([ANY, ALL, IDS, MIXED, BAD, FIRST]), min_size=1, max_size=4, unique=True)
COUNTED = st.sampled_from([Expectation("only", ids=("red",)), Expectation("at_most", n=2)])
DEPTHS = st.integers(1, 6)


@given(RANKED, st.lists(COUNTED, max_size=2), DEPTHS, st.booleans(), ANSWERS)
def test_shares_lie_between_0_and_1(
    ranked: list[Expectation], counted: list[Expectation], k: int, abstain: bool, texts: str
):
    """Every metric that is a share is one, and none is NaN."""
    scores = _scores(_asking(*ranked, *counted, k=k, abstain=abstain), texts)
    assert all(math.isfinite(value) for value in scores.values())
    assert all(0 <= value <= 1 for name, value in scores.items() if METRICS[name].unit == "share")


@given(RANKED, st.lists(COUNTED, max_size=2), DEPTHS, ANSWERS)
def test_the_order_of_expectations_changes_nothing(
    ranked: list[Expectation], counted: list[Expectation], k: int, texts: str
):
    """What is expected is a set."""
    orders = list(permutations([*ranked, *counted]))
    first, *others = [_scores(_asking(*order, k=k), texts) for order in orders[:: max(1, len(orders) // 6)]]
    assert all(scores == pytest.approx(first) for scores in others)


@given(RANKED, DEPTHS, ANSWERS, ANSWERS)
def test_hits_below_k_change_tokens_only(ranked: list[Expectation], k: int, texts: str, more: str):
    """What came back beyond the first k is paid for, and counts for nothing else."""
    assume(len(texts.split()) >= k)
    before, after = (_scores(_asking(*ranked, k=k), answer) for answer in (texts, f"{texts} {more}"))
    assert after.pop("returned_tokens") >= before.pop("returned_tokens")
    assert after == before


@given(RANKED, DEPTHS, ANSWERS, st.data())
def test_a_duplicate_never_raises_ndcg(ranked: list[Expectation], k: int, texts: str, data: st.DataObject):
    """Returning a memory twice is never better than returning it once."""
    found = texts.split()
    assume(found)
    rank = data.draw(st.integers(0, len(found) - 1))
    place = data.draw(st.integers(rank + 1, len(found)))
    twice = [*found[:place], found[rank], *found[place:]]
    before, after = (_scores(_asking(*ranked, k=k), " ".join(answer)) for answer in (found, twice))
    assert after.get("ndcg@k", 0) <= before.get("ndcg@k", 0) + 1e-12


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "x", "y"]), unique=True, max_size=6), DEPTHS, st.data())
def test_ndcg_is_the_textbook_one_where_each_want_has_one_hit(found: list[str], k: int, data: st.DataObject):
    """With one hit for each thing wanted it is DCG over the DCG of the ideal order, both cut at k."""
    wanted = data.draw(st.sets(st.sampled_from("abcd"), min_size=1))
    gains = [float(word in wanted) for word in found]
    ideal = [1.0] * len(wanted)
    scores = _scores(_asking(Expectation("all", ids=tuple(sorted(wanted))), k=k), " ".join(found))
    assert scores["ndcg@k"] == pytest.approx(_dcg(gains, k) / _dcg(ideal, k))


def _dcg(gains: list[float], k: int) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], 1))


@given(RANKED, DEPTHS, ANSWERS)
def test_a_wider_k_never_lowers_recall(ranked: list[Expectation], k: int, texts: str):
    """Looking further down finds more or the same."""
    near, far = (_scores(_asking(*ranked, k=depth), texts) for depth in (k, k + 1))
    assert far.get("recall@k", 0) >= near.get("recall@k", 0)
    assert far.get("mrr", 0) >= near.get("mrr", 0)


@given(RANKED, DEPTHS, ANSWERS)
def test_scoring_looks_at_ids_and_texts_alone(ranked: list[Expectation], k: int, texts: str):
    """The backend's own scores, metadata, the query and the tags are no part of any metric."""
    probe = _asking(*ranked, k=k)
    dressed = tuple(replace(hit, score=0.5, metadata={"red": "old"}) for hit in _hits(texts))
    other = replace(probe, query="red old", tags=("t",), critical=True, user="rosa")
    assert judge(other, Observation(dressed, latency_ms=9.0, attempts=3))[1] == _scores(probe, texts)


def test_score_is_what_judge_gives():
    """judge is examine, then every metric that applies."""
    probe = _asking(ALL, BAD)
    evidence, scores = judge(probe, Observation(_hits("red old")))
    assert evidence == examine(probe, _hits("red old"))
    assert scores == score(probe, evidence)
