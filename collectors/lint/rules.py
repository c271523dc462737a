"""The rules, in one table. docs/lint.md tells the same, and a test holds them together."""

from __future__ import annotations

from collectors.lint import answers, cases, contradictions, privacy, steps
from collectors.lint.findings import Rule, each

RULES_VERSION = "2"
"""Raised whenever a rule may come out differently for the same suite."""

RULES = (
    Rule(
        "malformed",
        "error",
        "A line that cannot be read is no case, and its suite does not run.",
        "Correct the field that is named; docs/suites.md tells all fields.",
    ),
    Rule(
        "duplicate-id",
        "error",
        "Results are kept by id: two cases of one id would be one row.",
        "Give every case, and every memory in a namespace, an id of its own.",
    ),
    Rule(
        "invalid-regex",
        "error",
        "A pattern that cannot be compiled matches nothing.",
        "Escape what is meant literally: \\\\( \\\\[ \\\\* \\\\? \\\\+ in JSON.",
        cases.invalid,
    ),
    Rule(
        "catastrophic-regex",
        "error",
        "A pattern that tries every way to cut a text up takes a second at each hit, and judges nothing.",
        "Let nothing repeat inside a repeat: \\\\w+ in place of (\\\\w+)+.",
        cases.catastrophic,
    ),
    Rule(
        "no-writes",
        "error",
        "Where nothing is planted, an empty answer is all that can come back, from a broken memory too.",
        "Give writes, a world, or a step that plants before the question.",
        each(answers.no_writes),
    ),
    Rule(
        "underivable",
        "error",
        "What was not planted within the question's user, domains and session comes back only by mistake: "
        "a good memory loses the case.",
        "Plant it before the question, or widen the question's scope, or correct the pattern.",
        each(answers.underivable),
    ),
    Rule(
        "forbidden-matches-wanted",
        "error",
        "The right answer is punished, and no memory can pass.",
        "Forbid the stale sentence and not a word of it, or forbid it in the first place only (forbid_top1).",
        each(answers.forbidden_matches_wanted),
    ),
    Rule(
        "no-room",
        "error",
        "What is wanted stands in more memories than may come back, so no memory can pass.",
        "Raise k or at_most, or ask for less.",
        each(contradictions.no_room),
    ),
    Rule(
        "other-metadata",
        "error",
        "The metadata expected is not what was planted: a memory that keeps it loses the case.",
        "Correct expect_metadata, or what is planted.",
        each(contradictions.other_metadata),
    ),
    Rule(
        "abstain-expects",
        "error",
        "Where nothing planted answers nothing can be expected: one of the two is a mistake.",
        "Take abstain out, or what is expected.",
        cases.each_question(contradictions.silent_and_speaking),
    ),
    Rule(
        "forbidden-nothing",
        "error",
        "A pattern that nothing planted matches forbids nothing: the case looks stricter than it is.",
        "Plant what a wrong memory would return, or take the pattern out.",
        each(answers.forbidden_nothing),
    ),
    Rule(
        "ambiguous",
        "error",
        "A near-miss passes for the answer, so a memory that is wrong passes the case.",
        "Tighten the pattern until only the answer matches (\\\\b45\\\\b, since 45 is in 450 too), or forbid "
        "the near-miss.",
        each(answers.ambiguous),
    ),
    Rule(
        "too-common",
        "error",
        "A pattern that more than a third of the candidates match is met by chance.",
        "Ask for the fact and not for its topic.",
        each(answers.too_common),
    ),
    Rule(
        "k-too-large",
        "error",
        "With k as large as the number of candidates all that is wanted is found, whatever was asked.",
        "Lower k, or plant more near-misses.",
        each(answers.k_too_large),
    ),
    Rule(
        "duplicate-story",
        "error",
        "The same story twice counts one failure twice, and makes intervals narrower than they are.",
        "Take one of them out, or tell another story.",
        cases.told_twice,
    ),
    Rule(
        "missing-source",
        "error",
        "Without the failure it comes from nobody can tell later whether a case may go.",
        "Say in source where the failure was seen, or which kind it is.",
        cases.each_line(cases.without_source),
    ),
    Rule(
        "unknown-leg",
        "warning",
        "A backend without this leg skips the case, for ever and in silence.",
        "Name keyword or vector; the leg of a backend of your own is fine.",
        cases.each_question(cases.unknown_leg),
    ),
    Rule(
        "question-tells",
        "warning",
        "A question that holds the answer's own words is answered by any search for words.",
        "Ask in other words, or tag the case identifier where its point is to find what is named.",
        each(cases.told_by_the_question),
    ),
    Rule(
        "undated",
        "warning",
        "Yesterday is another day for each run where the memory does not say when it was told.",
        "Give the memory its event time (at).",
        cases.each_line(cases.undated),
    ),
    Rule(
        "idle-step",
        "warning",
        "A step that changes nothing, or that no question follows, tests nothing.",
        "Correct the id, the user or the text, ask afterwards, or take the step out.",
        steps.idle,
    ),
    Rule(
        "forgetting-unseen",
        "warning",
        "Where nothing is forbidden after a forgetting, a memory that forgets nothing passes.",
        "Ask for what was forgotten and forbid it (forbid_any, forbid_ids, at_most).",
        steps.untold_forgetting,
    ),
    Rule(
        "secret",
        "warning",
        "Cases are sent to every backend and stored with every answer; a key does not belong there.",
        "Put a made-up value in its place, and withdraw the key if it was real.",
        privacy.in_all_that_is_said(privacy.secrets),
    ),
    Rule(
        "personal-data",
        "warning",
        "Cases are sent to every backend and stored with every answer; a person's details need not be.",
        "Put a placeholder in its place: someone@example.com, 555-0123.",
        privacy.in_all_that_is_said(privacy.persons),
    ),
    Rule(
        "passed-by-nothing",
        "warning",
        "A backend that returns nothing passes, and a broken memory looks just like it (--floors).",
        "Ask for something that must come back, or say abstain where silence is right.",
    ),
    Rule(
        "passed-by-everything",
        "warning",
        "A backend that never looks at the question passes: it returns all it has, newest first (--floors).",
        "Date the answer before its near-misses, plant more of them, or lower k.",
    ),
    Rule(
        "passed-by-both",
        "warning",
        "The case tells nothing apart: no memory at all and no choice at all both pass (--floors).",
        "Ask for something that must come back, or say abstain where silence is right.",
    ),
)

BY_NAME = {rule.name: rule for rule in RULES}
