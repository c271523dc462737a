"""What a scenario gives when its backend hangs, fails, lies or lacks something: errors, never numbers."""

import threading

import pytest

from collectors import calls
from collectors.backend import BackendConfig
from collectors.calls import Instance, Stopped
from collectors.scenario import CallLimits, play
from tests.collectors.odd_backends import GARBAGE, ODD, HangingDoor
from tests.collectors.playground import case, journal, suite

pytestmark = pytest.mark.usefixtures("no_pauses")
LIMITS = CallLimits(timeout_s=5.0, attempts=3, diagnoses=0)
HASTY = CallLimits(timeout_s=0.4, attempts=3, diagnoses=0)


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def started(notes, tmp_path):
    """Play the steps of one case on a backend of odd_backends: what came back, and the instance."""

    def start(type, steps, limits=LIMITS, **options):
        (scenario,) = suite(tmp_path, [{"id": "told", "steps": steps}]).scenarios
        instance = Instance(BackendConfig("mine", ODD + type, {"journal": str(notes), **options}))
        return play(instance, scenario, "memtrend-test", limits), instance

    return start


def plant(*texts, **fields):
    return {"plant": [{"id": text.split()[0], "text": text, **fields} for text in texts]}


def probe(query, wanted="opens", **fields):
    return {"probe": query, "expect_any": [wanted], "k": 1, **fields}


def states(played):
    """Of each answer: ok, error or skipped."""
    seen = [answer.observation for answer in played.answers]
    return ["error" if one.error else "skipped" if one.skipped else "ok" for one in seen]


THREE = [plant("amber opens door 1"), *(probe(f"amber {word}") for word in ("one", "hang", "three"))]


def test_all_well(started, notes):
    """Every probe is answered and scored, planting is counted and timed, and the namespace is dropped."""
    played, _ = started("Shelf", [plant("amber opens", "basil closes"), probe("amber"), probe("basil", "x")])
    assert states(played) == ["ok", "ok"]
    assert [answer.scores["pass"] for answer in played.answers] == [1.0, 0.0]
    assert (played.plants, played.ingest.calls, played.ingest.tokens) == (2, 1, 20)
    assert (played.attempts, played.error, played.settle_error) == (1, None, None)
    assert played.plant_ms > 0
    assert journal(notes)["reset", ""] == 2


def test_one_call_for_memories_of_one_user(started, notes):
    """Memories that follow each other are planted together as long as their user and session are the same."""
    steps = [
        *({"session": "monday"}, plant("amber opens", "basil"), plant("cedar", user="noor")),
        *(plant("daisy", user="noor", session="friday"), probe("amber")),
    ]
    played, _ = started("Shelf", steps)
    assert (played.plants, played.ingest.calls) == (4, 3)


def test_settled_before_each_question_after_a_change(started, notes):
    """A question waits for what was planted before it; questions in a row wait once."""
    started("Shelf", [plant("amber opens"), probe("amber"), probe("amber"), plant("basil"), probe("amber")])
    assert journal(notes)["settle", ""] == 2


# Hanging


@pytest.mark.parametrize(
    ("verb", "steps", "expected"),
    [
        ("recall", THREE, ["ok", "error", "error"]),
        ("remember", [plant("hang on a nail"), *THREE[1:]], ["error"] * 3),
        ("forget", [*THREE[:2], plant("hang on"), {"forget": ["hang"]}, *THREE[3:]], ["ok", "error"]),
    ],
)
def test_hanging_call(started, notes, verb, steps, expected):
    """A call that hangs times out, the rest of the scenario are errors, and the backend is opened anew."""
    played, instance = started("Hanging", steps, HASTY, verb=verb)
    assert states(played) == expected
    assert played.error == "no answer within 0.4 s"
    assert {answer.observation.error for answer in played.answers if answer.observation.error} == {
        played.error
    }
    assert not any(answer.scores for answer in played.answers if answer.observation.error)
    assert played.attempts == 1, "what hangs is not played again"
    instance.handle()
    assert journal(notes)["open", ""] == 2


def test_hanging_door(started, tmp_path):
    """A server that went down with a call and takes no new connection ends each scenario in its time."""
    try:
        _, instance = started("HangingDoor", THREE, HASTY)
        (scenario,) = suite(tmp_path, [case("amber")]).scenarios
        for _ in range(2):
            later = play(instance, scenario, "memtrend-test", HASTY)
            assert (states(later), later.error) == (["error"], "no answer within 0.4 s")
    finally:
        HangingDoor.shut = False


def test_hanging_at_the_end(started):
    """When only the cleaning up hangs, what was answered counts, and what is left behind is told."""
    steps = [plant("amber opens"), probe("amber")]
    played, _ = started("Clinging", steps, HASTY)
    assert (states(played), played.error) == (["ok"], None)
    assert played.left == "namespace memtrend-test is left behind: no answer within 0.4 s"


@pytest.mark.parametrize(
    ("type", "steps", "options"),
    [
        ("Hanging", [plant("hang on a nail"), probe("amber")], {"verb": "remember"}),
        ("StoresThenRaises", [plant("stumble opens"), probe("stumble")], {"once": False}),
    ],
)
def test_nothing_is_left_of_a_failure(started, notes, type, steps, options):
    """The namespace of a scenario that failed, or hung, is dropped as any other is."""
    played, _ = started(type, steps, HASTY, **options)
    assert (states(played), played.left) == (["error"], None)
    assert notes.read_text().splitlines()[-1].split()[1] == "reset"


# Failing


def test_bad_line(started):
    """Calls that fail in passing are asked again: the answers are whole and the attempts are counted."""
    played, _ = started("EveryThird", [plant("amber opens"), *(probe(f"amber {n}") for n in range(6))])
    assert states(played) == ["ok"] * 6
    assert [answer.observation.attempts for answer in played.answers] == [1, 1, 2, 1, 2, 1]
    assert all(answer.scores["pass"] for answer in played.answers)


@pytest.mark.parametrize(
    ("kind", "attempts", "error"),
    [
        ("permanent", 1, "permanent trouble"),
        ("transient", 3, "transient trouble"),
        ("bug", 1, "TypeError: unsupported operand"),
        ("exit", 1, "SystemExit: no licence"),
    ],
)
def test_refused_question(started, notes, kind, attempts, error):
    """A question that fails for good is an error of its case alone; only what may mend is asked again."""
    steps = [plant("amber opens"), probe("amber refuse"), probe("amber")]
    played, _ = started("Refusing", steps, kind=kind)
    assert states(played) == ["error", "ok"]
    seen = played.answers[0]
    assert (seen.observation.error, seen.observation.attempts, seen.failure) == (
        error,
        attempts,
        "backend error",
    )
    assert (seen.scores, seen.evidence) == ({}, None)
    assert journal(notes)["refused", "amber refuse"] == attempts


def test_stored_and_then_raised(started, notes):
    """A planting that was stored and then raised is played again from `reset`, so nothing is there twice."""
    steps = [plant("basil first"), plant("stumble opens"), probe("stumble", at_most=2)]
    played, _ = started("StoresThenRaises", steps)
    assert (states(played), played.attempts, played.error) == (["ok"], 2, None)
    assert played.answers[0].scores["pass"] == 1.0
    assert (played.plants, played.ingest.calls) == (2, 3), "what the replay cost is not forgotten"
    assert played.answers[0].observation.attempts == 2, "no answer at the first try"
    assert journal(notes)["remember", "told/stumble"] == 2
    assert journal(notes)["reset", ""] == 3


def test_planting_that_never_works(started, notes):
    """After its attempts a planting is given up, and every case of the scenario is an error."""
    steps = [plant("stumble opens"), probe("stumble"), probe("again")]
    played, _ = started("StoresThenRaises", steps, once=False)
    assert (states(played), played.attempts) == (["error", "error"], 3)
    assert [answer.observation.attempts for answer in played.answers] == [3, 3]
    assert played.error == "ConnectionResetError: reset by peer after the write"
    assert journal(notes)["remember", "told/stumble"] == 3


def test_broken_backend(started):
    """A backend that cannot be opened, for good, makes errors of all cases and is not tried again."""
    played, _ = started("Broken", [plant("amber opens"), probe("amber")])
    assert (states(played), played.attempts) == (["error"], 1)
    assert played.error == "the server says: unknown key"


def test_never_settling(started):
    """A backend that never settles is asked all the same, and the reason is kept: no wait becomes a 0."""
    played, _ = started("Unsettled", [plant("amber opens"), probe("amber")])
    assert played.settle_ms is None
    assert (states(played), played.settle_error, played.error) == (["ok"], "not indexed after 2 s", None)
    assert played.answers[0].scores["pass"] == 1.0


@pytest.mark.parametrize("kind", sorted(GARBAGE.keys() - {"surrogate"}))
def test_garbage(started, kind):
    """An answer of the wrong types is an error of its case, told in words and never asked again."""
    steps = [plant("amber opens"), probe("amber garbage"), probe("amber")]
    played, _ = started("Garbage", steps, kind=kind)
    assert states(played) == ["error", "ok"]
    seen = played.answers[0]
    assert seen.observation.attempts == 1
    assert len(seen.observation.error) > 20
    assert (seen.scores, seen.failure) == ({}, "backend error")


# Beside the answer


def test_asked_twice(started):
    """A question that wants a steady answer is asked twice; the second answer is kept where it differs."""
    steps = [plant("amber opens", "basil opens amber"), probe("amber", stable=True, k=2), probe("amber", k=2)]
    steady, _ = started("Shelf", steps)
    assert [answer.scores["pass"] for answer in steady.answers] == [1.0, 1.0]
    assert steady.answers[0].scores["unstable"] == 0.0
    assert "unstable" not in steady.answers[1].scores
    restless, _ = started("Restless", steps)
    first, second = restless.answers
    assert (first.scores["pass"], first.scores["unstable"], first.failure) == (0.0, 1.0, "order unstable")
    assert [hit.id for hit in first.observation.again] == [hit.id for hit in first.observation.hits][::-1]
    assert second.observation.again is None


def test_lacking_metadata(started):
    """Where a backend gives no metadata back, what is expected of it does not apply."""
    asked = {"probe": "amber", "expect_metadata": {"amber": {"role": "user"}}}
    played, _ = started("Shelf", [plant("amber opens"), asked])
    assert [answer.observation.skipped for answer in played.answers] == ["metadata"]


# Lacking


def test_lacking_ids(started):
    """Where a backend does not give ids back, what is asked by id does not apply; the rest does."""
    by_id = {"probe": "amber", "expect_ids": ["amber"], "k": 1}
    played, _ = started("Bare", [plant("amber opens"), by_id, probe("amber")])
    assert states(played) == ["skipped", "ok"]
    seen = played.answers[0]
    assert (seen.observation.skipped, seen.observation.attempts, seen.scores, seen.failure) == (
        "ids",
        0,
        {},
        None,
    )


def test_lacking_a_leg(started):
    """A question to an index that the backend does not have does not apply."""
    played, _ = started("Shelf", [plant("amber opens"), probe("amber", leg="vector")])
    assert [answer.observation.skipped for answer in played.answers] == ["leg vector"]


def test_lacking_a_step(started, notes):
    """After a step that the backend cannot do no question of the scenario applies; those before do."""
    steps = [
        plant("amber opens"),
        probe("amber"),
        {"forget": ["amber"]},
        probe("amber"),
        {"reopen": True},
        probe("x"),
    ]
    played, _ = started("Bare", steps)
    assert states(played) == ["ok", "skipped", "skipped"]
    assert [answer.observation.skipped for answer in played.answers[1:]] == ["forget", "forget"]
    assert journal(notes)["forget", "amber"] == 0


def test_nothing_applies(started, notes):
    """A scenario none of whose questions applies is not planted."""
    played, _ = started("Bare", [plant("amber opens"), {"probe": "amber", "expect_ids": ["amber"]}])
    assert not notes.exists()
    assert (played.plant_ms, played.settle_ms) == (None, None)


def test_reopened(started, notes):
    """A durable backend is settled, closed and opened anew, and still knows what was planted."""
    played, _ = started("Durable", [plant("amber opens"), {"reopen": True}, probe("amber")])
    assert (states(played), played.answers[0].scores["pass"]) == (["ok"], 1.0)
    verbs = [line.split()[1] for line in notes.read_text().splitlines()]
    assert verbs == ["open", "reset", "remember", "settle", "close", "open", "settle", "recall", "reset"]


# Spending


def test_what_asking_takes(started):
    """Questions and the diagnosis of a lost one are paid for; the diagnosis says what it took."""
    steps = [plant("amber opens"), probe("amber"), probe("amber", "missing")]
    played, _ = started("Paid", steps, CallLimits(timeout_s=5.0, diagnoses=1))
    usages = [answer.observation.usage for answer in played.answers]
    found = played.answers[1].diagnosis
    assert [usage.calls for usage in usages] == [1, 1]
    assert found.usage.calls > 0
    assert played.asking.calls == 2 + found.usage.calls


# Judging


def test_pattern_without_end(started, monkeypatch):
    """An answer that a pattern cannot judge in time is kept, as an error of the judge, and is no number."""
    monkeypatch.setattr("collectors.matching.TIME_LIMIT_S", 0.05)
    text = "amber " + "a" * 60
    played, _ = started("Shelf", [plant(text), probe("amber", r"(a|aa)+$x")])
    (seen,) = played.answers
    assert (seen.failure, seen.scores, len(seen.observation.hits)) == ("judge error", {}, 1)
    assert "simplify" in seen.observation.error


# Stopping


def test_stopped(notes, tmp_path, monkeypatch):
    """A stop throws the scenario in flight away, a call that hangs notwithstanding."""
    monkeypatch.setattr(calls, "GRACE_S", 0.05)
    (scenario,) = suite(tmp_path, [{"id": "told", "steps": THREE}]).scenarios
    instance = Instance(BackendConfig("mine", ODD + "Hanging", {"journal": str(notes)}))
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(Stopped):
        play(instance, scenario, "memtrend-test", LIMITS, stop)
