"""A backend with one named fault does wrong what the fault says, and the rest right."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine

from collectors import failures, symptoms
from collectors.backend import Backend, BackendConfig, BackendError, open_backend
from collectors.backends.faulty import FAULTS
from collectors.suite import Memory, Scope

BOX = Scope("memtrend-test", "ana")
LUCIA = replace(BOX, user="ana-lucia")
FERRY = Memory(
    "ferry", "The ferry to Gozo leaves at seven from the small quay.", user="ana", domain="travel",
    at=datetime(2026, 3, 1, tzinfo=UTC), session="s1", metadata={"line": 4},
)  # fmt: skip
LATER = Memory(
    "later", "Since May the ferry to Gozo leaves at nine.", user="ana", domain="travel",
    at=datetime(2026, 5, 1, tzinfo=UTC), session="s2", role="assistant",
)  # fmt: skip
PIANO = Memory("piano", "The piano tuner comes on Friday and wants coffee.", user="ana", domain="travel-x")
HEDGE = Memory("hedge", "Hedges are cut in June.", user="ana", session="s1")
HERS = Memory("hers", "My ferry to Gozo is booked for Sunday.", user="ana-lucia", domain="travel")
MINE = (FERRY, LATER, PIANO, HEDGE)
FERRIES = "When does the ferry to Gozo leave?"


def opened(fault: str, directory: Path | None = None, of: str = "hybrid", **options: object) -> Backend:
    options = {"fault": fault, "of": {"type": of}, **options}
    return open_backend(BackendConfig("broken", "faulty", options, directory=directory))


def filled(fault: str, directory: Path | None = None, of: str = "hybrid", **options: object) -> Backend:
    backend = opened(fault, directory, of, **options)
    backend.reset(Scope(BOX.namespace))
    for memory in MINE:
        backend.remember(replace(BOX, session=memory.session), [memory])
    backend.remember(LUCIA, [HERS])
    backend.settle(BOX)
    return backend


def ids(backend: Backend, query: str = FERRIES, scope: Scope = BOX, k: int = 5, leg: str | None = None):
    return [hit.id for hit in backend.recall(scope, query, k, leg).hits]


def hit(backend: Backend, id: str, query: str = FERRIES):
    return next(hit for hit in backend.recall(BOX, query, 10).hits if hit.id == id)


# The table


def test_the_kind_of_every_fault_is_one_we_know():
    """What a fault should be called is a name that `failures.py` or `symptoms.py` can give."""
    assert {fault.kind for fault in FAULTS.values()} <= failures.KINDS.keys() | symptoms.KINDS.keys()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("of", ["hybrid", "dense", "everything", "nothing"])
def test_goes_around_any_backend(fault: str, of: str):
    """A fault declares what the wrapped backend declares, and each of its verbs can be called."""
    healthy = open_backend(BackendConfig("healthy", of))
    backend = opened(fault, of=of)
    assert (backend.capabilities, backend.legs) == (healthy.capabilities, healthy.legs)
    backend.reset(Scope(BOX.namespace))
    backend.remember(BOX, [replace(memory, session=None) for memory in MINE])
    retried(lambda: backend.settle(BOX))
    retried(lambda: backend.recall(BOX, FERRIES, 3))
    backend.amend(BOX, "piano", "The piano tuner comes on Monday.")
    backend.forget(BOX, ["hedge"])
    backend.forget_user(BOX)
    backend.close()


def retried(call):
    for _ in range(4):
        try:
            return call()
        except BackendError as error:
            if error.permanent:
                raise
    raise AssertionError("failed four times")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"fault": "gremlins", "of": {"type": "hybrid"}},
            "unknown fault 'gremlins'; known: keyword-leg-dead",
        ),
        ({"of": {"type": "hybrid"}}, "unknown fault None"),
        ({"fault": "slow"}, 'such as of = { type = "hybrid" }'),
        ({"fault": "slow", "of": {"type": "hybrid"}, "share": 2}, "share"),
        ({"fault": "slow", "of": {"type": "cloud"}}, "unknown type 'cloud'"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], told: str):
    """An unknown fault, or nothing to wrap, is refused by name, with what there is."""
    with pytest.raises(BackendError) as error:
        open_backend(BackendConfig("broken", "faulty", options))
    assert told in str(error.value)
    assert error.value.permanent


# Legs


@pytest.mark.parametrize(("fault", "dead"), [("keyword-leg-dead", "keyword"), ("vector-leg-dead", "vector")])
def test_a_dead_leg(fault: str, dead: str):
    """One leg finds nothing, the other does, and together they still answer."""
    backend = filled(fault)
    (other,) = set(backend.legs) - {dead}
    assert ids(backend, leg=dead) == []
    assert "ferry" in ids(backend, leg=other)
    assert "ferry" in ids(backend)


def test_a_leg_dead_for_long_questions():
    """Eight words reach the vectors, nine do not."""
    backend = filled("vector-leg-dead-long")
    assert ids(backend, "when does the ferry to Gozo leave today", leg="vector")
    assert ids(backend, "when does the ferry to Gozo leave today, please", leg="vector") == []


def test_half_missing_from_a_leg():
    """Some documents are in one leg and not in the other, and the counts tell."""
    backend = filled("leg-half-missing")
    counts = backend.count(BOX)
    missing = {m.id for m in MINE if m.id not in ids(backend, m.text, leg="keyword")}
    assert 0 < len(missing) < len(MINE)
    assert missing.isdisjoint(ids(backend, leg="keyword", k=10))
    assert counts["keyword"] < counts["vector"] == len(MINE) + 1


# Scopes


@pytest.mark.parametrize("fault", ["ignores-user", "user-filter-one-path", "prefix-scope"])
def test_users_are_mixed(fault: str):
    """A user's question gets what another one planted."""
    assert "hers" in ids(filled(fault), k=10)
    assert "hers" not in ids(filled("slow"), k=10)


def test_only_longer_names_are_seen():
    """A prefix reaches downwards: ana sees ana-lucia, and not the other way round. So do domains."""
    backend = filled("prefix-scope")
    assert ids(backend, scope=LUCIA, k=10) == ["hers"]
    assert "piano" in ids(backend, PIANO.text, replace(BOX, domains=("travel",)))


def test_domains_are_mixed():
    """A question about one domain is answered from all."""
    asked = replace(BOX, domains=("travel",))
    assert "hedge" in ids(filled("ignores-domain"), HEDGE.text, asked)
    assert "hedge" not in ids(filled("slow"), HEDGE.text, asked)


def test_sessions_bleed():
    """A question within a session is answered from the user's other ones."""
    asked = replace(BOX, session="s2")
    assert "ferry" in ids(filled("session-bleeds"), scope=asked)
    assert "ferry" not in ids(filled("slow"), scope=asked)


def test_a_narrow_search_is_empty():
    """Within a domain or a session nothing is found, though all is there."""
    backend = filled("narrow-search-empty")
    assert ids(backend, scope=replace(BOX, domains=("travel",))) == []
    assert ids(backend, scope=replace(BOX, session="s1")) == []
    assert "ferry" in ids(backend)


def test_another_namespace_answers():
    """What was planted in one namespace comes first in the next."""
    backend = filled("other-namespace")
    other = Scope("memtrend-other", "ana")
    backend.reset(other)
    backend.remember(other, [replace(PIANO, id="tuner")])
    assert ids(backend, scope=other)[0] in {"ferry", "later", "hers"}
    assert ids(backend, scope=other)[1:] == ["tuner"]


# Answers


def test_returns_everything_or_nothing():
    """All that the user has, in the order of planting; or never a hit."""
    assert ids(filled("returns-everything"), k=1) == [memory.id for memory in MINE]
    assert ids(filled("returns-nothing")) == []


def test_ignores_the_question():
    """Every question gets the same answer."""
    backend = filled("ignores-query")
    assert ids(backend) == ids(backend, PIANO.text) == ids(backend, "")


def test_stale_first():
    """Of two that fit the older one comes first, however they rank."""
    assert ids(filled("slow"), LATER.text, k=2)[0] == "later"
    assert ids(filled("stale-first"), LATER.text, k=2) == ["ferry", "later"]


@pytest.mark.parametrize(
    ("fault", "k", "number"), [("limit-ignored", 1, 4), ("limit-three", 1, 3), ("threshold-half", 4, 2)]
)
def test_limits(fault: str, k: int, number: int):
    """So many come back where k were asked for."""
    assert len(ids(filled(fault), k=k)) == number


def test_question_marks():
    """A question mark finds nothing, the same words without it do."""
    backend = filled("question-mark")
    assert ids(backend, "ferry to Gozo?") == []
    assert ids(backend, "ferry to Gozo")


def test_ties_are_shuffled():
    """What is equally good changes places, and nothing else does."""
    backend = filled("unstable-ties")
    backend.remember(BOX, [Memory(f"e{n}", "Backup done.") for n in range(6)])
    answers = {tuple(ids(backend, "Backup done.", k=6)) for _ in range(8)}
    assert len(answers) > 1
    assert {tuple(sorted(answer)) for answer in answers} == {tuple(f"e{n}" for n in range(6))}
    assert len({tuple(ids(backend, k=4)) for _ in range(8)}) == 1


def test_slow():
    """A call takes at least its pause."""
    backend = filled("slow")
    started = time.perf_counter()
    ids(backend)
    assert time.perf_counter() - started >= 0.02


def test_some_calls_fail():
    """About one in twenty fails with an error that may pass; equal histories fail alike."""
    outcomes = [list(failing(filled_until_it_works("some-calls-fail"), 400)) for _ in range(2)]
    assert outcomes[0] == outcomes[1]
    assert 5 < sum(outcomes[0]) < 40


def filled_until_it_works(fault: str) -> Backend:
    backend = opened(fault)
    backend.reset(Scope(BOX.namespace))
    backend.remember(BOX, MINE)
    return backend


def failing(backend: Backend, times: int) -> Iterator[bool]:
    for _ in range(times):
        try:
            backend.recall(BOX, FERRIES, 1)
            yield False
        except BackendError as error:
            yield not error.permanent


# Stored


def test_event_time_is_now():
    """When it happened becomes when it was stored."""
    before = datetime.now(UTC)
    at = datetime.fromisoformat(hit(filled("event-time-now"), "ferry").metadata["at"])
    assert before <= at <= datetime.now(UTC)


def test_speakers_are_swapped():
    """The user's words are the assistant's, and the other way round."""
    backend = filled("speaker-swapped")
    assert [hit(backend, id).metadata["role"] for id in ("ferry", "later")] == ["assistant", "user"]


def test_texts_are_cut():
    """64 characters remain, of what is amended too."""
    backend = opened("text-cut")
    backend.reset(Scope(BOX.namespace))
    backend.remember(BOX, [replace(FERRY, text="ferry " * 30)])
    assert hit(backend, "ferry", "ferry").text == ("ferry " * 30)[:64]
    backend.amend(BOX, "ferry", "gozo " * 30)
    assert hit(backend, "ferry", "gozo").text == ("gozo " * 30)[:64]


def test_stored_twice():
    """Every memory comes back twice under its id; amended and forgotten both are."""
    backend = filled("stored-twice")
    assert ids(backend, k=10).count("ferry") == 2
    backend.amend(BOX, "piano", "The piano is sold.")
    texts = [hit.text for hit in backend.recall(BOX, "piano", 10).hits if hit.id == "piano"]
    assert texts == ["The piano is sold."] * 2
    backend.forget(BOX, ["ferry"])
    assert "ferry" not in ids(backend, k=10)


def test_ids_are_lost():
    """The texts come back, under ids that nobody planted."""
    answer = filled("ids-lost").recall(BOX, FERRIES, 10).hits
    assert {hit.text for hit in answer} == {memory.text for memory in MINE}
    assert {hit.id for hit in answer}.isdisjoint(memory.id for memory in MINE)


def test_the_last_write_is_lost():
    """The last memory of a call is not there, the others are."""
    backend = opened("last-write-lost")
    backend.reset(Scope(BOX.namespace))
    backend.remember(BOX, MINE)
    assert set(ids(backend, k=10)) == {"ferry", "later", "piano"}


def test_lost_on_reopen(tmp_path: Path):
    """What was planted is there until the store is closed, and not after; healthy, it is."""
    for fault, kept in (("lost-on-reopen", []), ("slow", [memory.id for memory in MINE])):
        backend = filled(fault, tmp_path / fault)
        assert len(ids(backend, k=10)) == len(MINE)
        backend.close()
        assert sorted(ids(opened(fault, tmp_path / fault), k=10)) == sorted(kept)


# Forgetting and changing


def test_forget_does_nothing():
    """Neither a memory nor a user is forgotten."""
    backend = filled("forget-no-op")
    backend.forget(BOX, ["ferry"])
    backend.forget_user(LUCIA)
    assert "ferry" in ids(backend)
    assert ids(backend, scope=LUCIA) == ["hers"]


def test_forgetting_one_user_wipes_all():
    """Nobody's memories are left."""
    backend = filled("forget-wipes-users")
    backend.forget_user(LUCIA)
    assert ids(backend, scope=LUCIA) == ids(backend) == []


def test_forgetting_takes_what_resembles():
    """A forgotten memory takes along one that it resembles."""
    backend = filled("forget-related")
    backend.forget(BOX, ["ferry"])
    assert {"ferry", "later"}.isdisjoint(ids(backend, k=10))


def test_amending_drops_the_rest():
    """The new text is there, without time, domain and the memory's own metadata."""
    backend = filled("amend-drops-metadata")
    backend.amend(BOX, "ferry", "The ferry to Gozo leaves at six.")
    found = hit(backend, "ferry")
    assert found.text == "The ferry to Gozo leaves at six."
    assert {"at", "domain", "line"}.isdisjoint(found.metadata)


def test_the_superseded_stays():
    """After amending both texts come back, under one id; forgetting it forgets both."""
    backend = filled("superseded-beside")
    backend.amend(BOX, "ferry", "The ferry to Gozo leaves at six.")
    texts = [hit.text for hit in backend.recall(BOX, FERRIES, 10).hits if hit.id == "ferry"]
    assert set(texts) == {"The ferry to Gozo leaves at six.", FERRY.text}
    backend.forget(BOX, ["ferry"])
    assert "ferry" not in ids(backend, k=10)


def test_a_contradiction_deletes_both():
    """A new fact much like an older one goes, and the older one; so does what is amended."""
    backend = filled("contradiction-deletes-both")
    backend.remember(BOX, [Memory("new", "The piano tuner comes on Monday and wants coffee.")])
    assert {"new", "piano"}.isdisjoint(ids(backend, PIANO.text, k=10))
    backend.amend(BOX, "hedge", "Hedges are cut in May.")
    assert "hedge" not in ids(backend, HEDGE.text, k=10)


def test_a_new_fact_retires_another():
    """The earlier memory most like the new one is gone, the new one is there."""
    backend = filled("slow")
    assert "piano" in ids(backend, PIANO.text)
    backend = filled("new-fact-retires")
    backend.remember(BOX, [Memory("new", "The piano tuner's van is green.")])
    left = ids(backend, PIANO.text, k=10)
    assert "new" in left
    assert "piano" not in left


# Noise


def asked(backend: Backend, questions: Sequence[str], times: int) -> list[list[str]]:
    return [ids(backend, question, k=1) for _ in range(times) for question in questions]


def test_noise_is_seeded():
    """Equal seeds give equal noise, whatever the order of the questions; another seed gives another."""
    questions = [f"{FERRIES} {n}" for n in range(20)]
    one, same = (filled("flaky", share=0.5, flip=0.5, seed=3) for _ in range(2))
    first = asked(one, questions, 4)
    backwards = asked(same, questions[::-1], 4)
    assert [first[n : n + 20] for n in range(0, 80, 20)] == [
        backwards[n : n + 20][::-1] for n in range(0, 80, 20)
    ]
    assert asked(filled("flaky", share=0.5, flip=0.5, seed=4), questions, 4) != first


def test_noise_belongs_to_the_question():
    """About a share of the questions ever changes its answer, and these do so about as often as told."""
    questions = [f"{FERRIES} {n}" for n in range(60)]
    answers = asked(filled("flaky", share=0.3, flip=0.5, seed=1), questions, 20)
    changed = [sum(answer != answers[n] for answer in answers[n::60]) for n in range(60)]
    unsure = [times for times in changed if times]
    assert 8 <= len(unsure) <= 30
    assert 0.25 < sum(unsure) / (20 * len(unsure)) < 0.75


def test_another_night_is_the_same_noise():
    """Another night has other times and the same unsure questions."""
    questions = [f"{FERRIES} {n}" for n in range(40)]
    nights = [asked(filled("flaky", share=0.3, flip=0.5, night=night), questions, 20) for night in (1, 2)]
    changed = [{n for n in range(40) if len(set(map(tuple, of[n::40]))) > 1} for of in nights]
    assert changed[0] == changed[1] != set()
    assert nights[0] != nights[1]


def test_each_hour_has_noise_of_its_own():
    """With `since`, noise is the same within an hour, whichever the date was, and another one hour later."""
    questions = [f"{FERRIES} {n}" for n in range(40)]

    def told(since: str, at: datetime) -> list[list[str]]:
        with time_machine.travel(at, tick=False):
            return asked(filled("flaky", share=0.5, flip=0.5, since=since), questions, 3)

    first = told("2026-03-01", datetime(2026, 3, 4, 3, 1, tzinfo=UTC))
    assert told("2026-03-01", datetime(2026, 3, 4, 3, 50, tzinfo=UTC)) == first
    assert told("2027-11-01", datetime(2027, 11, 4, 3, 1, tzinfo=UTC)) == first
    assert told("2026-03-01", datetime(2026, 3, 4, 5, 1, tzinfo=UTC)) != first


# Releases


def required(tmp_path: Path, release: str) -> Backend:
    """Of a package in a folder of the path."""
    metadata = tmp_path / f"made_up_sdk-{release}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: made-up-sdk\nVersion: {release}\n")
    return filled("returns-nothing", requires="made-up-sdk", releases=["1.5.0"])


@pytest.mark.parametrize(("release", "found"), [("1.4.2", True), ("1.5.0", False), ("1.5.1", True)])
def test_a_fault_of_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, found: bool):
    """A backend that requires a package has the fault in the releases named alone, and tells which release
    of the package it is made of."""
    monkeypatch.syspath_prepend(tmp_path)
    backend = required(tmp_path, release)
    assert bool(ids(backend)) is found
    assert backend.versions()["made-up-sdk"] == release


def test_a_required_package_is_installed():
    """A required package that is not installed is refused by its name."""
    with pytest.raises(BackendError, match=r"requires: no-such-sdk is not installed") as refused:
        opened("returns-nothing", requires="no-such-sdk")
    assert refused.value.permanent


def test_noise_is_no_longer_deterministic():
    """Noise takes back the promise that equal calls give equal answers."""
    assert "deterministic" not in opened("flaky").capabilities
    assert "deterministic" in opened("slow").capabilities
