"""The metrics known: what each is called, measured in, and means."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """`id` is the number stored with a score and never changes. `better` is the direction that is good.
    `smallest_change` is the smallest difference worth a word, in the metric's own unit, or as a share of the
    old value where `relative`. `kind` decides the interval: a share (Wilson), a mean or a median
    (bootstrap). `source`: scored from hits, rolled up from what stands in the result rows already, or told
    of a run."""

    id: int
    name: str
    unit: Literal["share", "ms", "count", "tokens", "USD"]
    better: Literal["higher", "lower"]
    smallest_change: float
    relative: bool
    kind: Literal["share", "mean", "median"]
    source: Literal["hits", "case", "scenario", "run"]
    meaning: str


_ROWS = (
    Metric(1, "pass", "share", "higher", 0.01, False, "share", "hits",
           "cases whose every expectation held"),
    Metric(2, "recall@k", "share", "higher", 0.01, False, "mean", "hits",
           "of what is wanted, the share found in the first k"),
    Metric(3, "precision@k", "share", "higher", 0.02, False, "mean", "hits",
           "of the first k hits, the share that is wanted; nothing returned: not applicable"),
    Metric(4, "mrr", "share", "higher", 0.02, False, "mean", "hits",
           "1 / rank of the first wanted hit within k, 0 when there is none"),
    Metric(5, "ndcg@k", "share", "higher", 0.02, False, "mean", "hits",
           "binary gains discounted by log2(rank + 1), against the best order possible"),
    Metric(6, "unwanted", "share", "lower", 0.01, False, "mean", "hits",
           "share of the first k hits that matches something forbidden"),
    Metric(7, "unwanted_first", "share", "lower", 0.01, False, "share", "hits",
           "cases whose first hit is one that must not come first"),
    Metric(8, "abstained", "share", "higher", 0.02, False, "share", "hits",
           "of the questions that nothing planted answers, those to which nothing came back"),
    Metric(9, "returned_n", "count", "lower", 0.5, False, "mean", "case",
           "hits that came back, whatever k was"),
    Metric(10, "returned_tokens", "tokens", "lower", 0.05, True, "mean", "hits",
           "words and punctuation marks in all hits that came back: what the agent's context pays"),
    Metric(11, "recall_ms", "ms", "lower", 0.2, True, "median", "case",
           "time of the recall that answered, as the backend took it"),
    Metric(12, "attempts", "count", "lower", 0.05, False, "mean", "case",
           "calls made for an answer; 1 is a first try"),
    Metric(13, "error_rate", "share", "lower", 0.01, False, "share", "case",
           "cases that got no answer after every retry"),
    Metric(14, "first_try_errors", "share", "lower", 0.01, False, "share", "case",
           "cases whose first call failed, whether or not a retry saved them"),
    Metric(15, "plant_ms", "ms", "lower", 0.2, True, "median", "scenario",
           "time to plant one memory"),
    Metric(16, "settle_ms", "ms", "lower", 0.2, True, "median", "scenario",
           "wait until what was planted can be found, a scenario"),
    Metric(17, "ingest_calls", "count", "lower", 0.05, True, "mean", "scenario",
           "model calls made to plant one memory"),
    Metric(18, "ingest_tokens", "tokens", "lower", 0.05, True, "mean", "scenario",
           "model tokens spent to plant one memory"),
    Metric(19, "money", "USD", "lower", 0.05, True, "mean", "scenario",
           "money spent by one scenario, planting and asking"),
    Metric(20, "leg_count", "count", "higher", 0.02, True, "mean", "hits",
           "memories that a leg says it holds"),
    Metric(21, "leg_share", "share", "higher", 0.02, False, "mean", "hits",
           "memories of a leg against those expected, or of the emptiest leg against the fullest: "
           "the smaller number as a share of the larger"),
    Metric(22, "unstable", "share", "lower", 0.01, False, "share", "hits",
           "of the questions asked twice, those answered otherwise the second time"),
    Metric(23, "anchor_drift", "share", "higher", 0.01, False, "mean", "run",
           "pass rate less that of the anchor, on the same cases"),
    Metric(24, "noise_floor", "share", "lower", 0.01, False, "share", "run",
           "cases that two runs of one unchanged backend, one after the other, answered differently"),
    Metric(25, "false_verdict", "share", "lower", 0.01, False, "share", "run",
           "calibrations in which an unchanged backend looked changed at the first look"),
)  # fmt: skip

NOISE_MS = 5.0
"""A difference in latency that a busy machine makes by itself, however small the latency."""

METRICS = {metric.name: metric for metric in _ROWS}
METRIC_NAMES = {metric.id: metric.name for metric in _ROWS}
