"""What a memory owes its users, asked of every backend that we ship. What one lacks it must not declare."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
import stamina
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from collectors.backend import CAPABILITIES, Backend, BackendError, Hit
from collectors.backends.base import well_formed
from collectors.contract import adapter_checks
from collectors.suite import Memory, Scope

if TYPE_CHECKING:
    from tests.collectors.backends.conftest import Opened

BOX = Scope("memtrend-test-1")
OTHER_BOX = Scope("memtrend-test-2")
ANNA, BRUNO = replace(BOX, user="anna"), replace(BOX, user="bruno")

HARBOUR = Memory(
    "m-harbour",
    "The harbour master of Ystad closes the gate at 21:40 in winter.",
    role="assistant",
    at=datetime(2026, 1, 15, 8, 30, tzinfo=timezone(timedelta(hours=1))),
    domain="work",
    metadata={"source": "phone call", "confidence": 0.75, "tags": ["gate", "winter"]},
)
FERRY = Memory(
    "m-ferry", "The night ferry from Ystad leaves at 22:30, booked under MÖLLER_77.", domain="travel"
)
PIANO = Memory("m-piano", "The piano tuner comes on the second Friday of the month.")
ASKED = {
    HARBOUR.id: "When does the harbour master close the gate?",
    FERRY.id: "When does the night ferry from Ystad leave?",
    PIANO.id: "When does the piano tuner come?",
}
OPTIONAL = {
    "amend": lambda backend: backend.amend(BOX, "m-piano", "other"),
    "forget": lambda backend: backend.forget(BOX, ["m-piano"]),
    "forget_user": lambda backend: backend.forget_user(BOX),
    "count": lambda backend: backend.count(BOX),
    "say": lambda backend: backend.say(BOX, "hello"),
}


def plant(backend: Backend, scope: Scope, *memories: Memory) -> None:
    backend.remember(scope, memories)
    backend.settle(scope)


def hits(backend: Backend, scope: Scope, query: str, k: int = 5) -> tuple[Hit, ...]:
    return backend.recall(scope, query, k).hits


def ids(backend: Backend, scope: Scope, query: str, k: int = 5) -> list[str]:
    return [hit.id for hit in hits(backend, scope, query, k)]


def answered(backend: Backend, scope: Scope, memories: Sequence[Memory]) -> list[str]:
    """Which of the memories come back when they are asked for."""
    return [memory.id for memory in memories if memory.id in ids(backend, scope, ASKED[memory.id])]


class TestContract:
    def test_declares_what_it_can_do(self, opened: Opened) -> None:
        """Capabilities are exactly those it is known to have, and legs are named when declared."""
        assert opened.backend.capabilities == opened.declared
        assert opened.backend.capabilities <= CAPABILITIES
        assert bool(opened.backend.legs) == ("legs" in opened.backend.capabilities)

    def test_its_adapter_is_whole(self, opened: Opened) -> None:
        """The checks made before every run pass, and leave their namespace empty."""
        results = adapter_checks(opened.backend, BOX.namespace)
        assert [result for result in results if not result.ok] == []
        assert ids(opened.backend, BOX, "spare key to the boathouse") == []

    def test_a_fresh_namespace_holds_nothing(self, opened: Opened) -> None:
        """Asked before anything was planted it answers, with nothing."""
        opened.backend.reset(BOX)
        assert ids(opened.backend, BOX, ASKED["m-piano"]) == []

    def test_returns_what_was_planted(self, opened: Opened) -> None:
        """A memory comes back with its id, its text and all that was said about it."""
        opened.backend.reset(BOX)
        plant(opened.backend, BOX, HARBOUR, FERRY, PIANO)
        found = [hit for hit in hits(opened.backend, BOX, ASKED["m-harbour"]) if hit.id == "m-harbour"]
        assert len(found) == opened.keeps
        for hit in found:
            assert hit.text == HARBOUR.text
            if "metadata" not in opened.declared:
                continue
            assert hit.metadata["role"] == "assistant"
            assert hit.metadata["user"] == BOX.user
            assert hit.metadata["domain"] == "work"
            assert datetime.fromisoformat(hit.metadata["at"]) == HARBOUR.at
            assert {name: hit.metadata[name] for name in HARBOUR.metadata} == HARBOUR.metadata

    def test_ranks_best_first(self, opened: Opened) -> None:
        """Scores, where there are any, fall from the first hit to the last, and the answer comes first."""
        opened.backend.reset(BOX)
        plant(opened.backend, BOX, PIANO, FERRY, HARBOUR)
        found = hits(opened.backend, BOX, ASKED["m-harbour"])
        scores = [hit.score for hit in found if hit.score is not None]
        assert scores == sorted(scores, reverse=True)
        if opened.type not in ("nothing", "everything"):
            assert found[0].id == "m-harbour"

    def test_reset_empties_one_namespace(self, opened: Opened) -> None:
        """Reset forgets all users of a namespace, and nobody of another one."""
        for scope in (ANNA, BRUNO, replace(OTHER_BOX, user="anna")):
            opened.backend.reset(scope) if scope != BRUNO else None
            plant(opened.backend, scope, HARBOUR)
        opened.backend.reset(BOX)
        assert answered(opened.backend, ANNA, [HARBOUR]) == []
        assert answered(opened.backend, BRUNO, [HARBOUR]) == []
        kept = answered(opened.backend, replace(OTHER_BOX, user="anna"), [HARBOUR])
        assert kept == ["m-harbour"] * opened.keeps

    def test_users_are_apart(self, opened: Opened) -> None:
        """A user gets nothing of another's, even under the same id, and changes nothing of it."""
        opened.backend.reset(BOX)
        plant(opened.backend, ANNA, replace(HARBOUR, user="anna"))
        plant(opened.backend, BRUNO, replace(HARBOUR, user="bruno", text="The gate of the harbour is open."))
        opened.backend.forget(BRUNO, ["m-harbour"])
        assert [hit.text for hit in hits(opened.backend, ANNA, "harbour gate")] == [
            HARBOUR.text
        ] * opened.keeps
        assert hits(opened.backend, BRUNO, "harbour gate") == ()

    def test_domains_are_apart(self, opened: Opened) -> None:
        """A question with domains is answered from these alone, one without from all."""
        opened.backend.reset(BOX)
        everything = [HARBOUR, FERRY, PIANO]
        plant(opened.backend, BOX, *everything)
        for domains, expected in {
            ("work",): ["m-harbour"],
            ("work", "travel"): ["m-harbour", "m-ferry"],
            ("nowhere",): [],
            (): ["m-harbour", "m-ferry", "m-piano"],
        }.items():
            scope = replace(BOX, domains=domains)
            assert answered(opened.backend, scope, everything) == expected * opened.keeps, domains

    def test_sessions_are_apart(self, opened: Opened) -> None:
        """A question with a session is answered from it alone, one without from all of the user's."""
        opened.backend.reset(BOX)
        monday, friday = replace(BOX, session="monday"), replace(BOX, session="friday")
        plant(opened.backend, monday, replace(HARBOUR, session="monday"))
        plant(opened.backend, friday, FERRY)  # of the scope's session
        for scope, expected in (
            (monday, ["m-harbour"]),
            (friday, ["m-ferry"]),
            (BOX, ["m-harbour", "m-ferry"]),
        ):
            assert answered(opened.backend, scope, [HARBOUR, FERRY]) == expected * opened.keeps, scope

    def test_amends_only_the_text(self, opened: Opened) -> None:
        """An amended memory is found by its new text, not its old one, and nothing else of it changes."""
        opened.backend.reset(BOX)
        plant(opened.backend, BOX, HARBOUR, PIANO)
        before = {hit.id: hit for hit in hits(opened.backend, BOX, ASKED["m-harbour"])}
        opened.backend.amend(BOX, "m-harbour", "The lighthouse of Sandhammaren is painted red.")
        opened.backend.settle(BOX)
        after = {hit.id: hit for hit in hits(opened.backend, BOX, "Which lighthouse is painted red?")}
        assert ("m-harbour" in after) == opened.keeps
        if opened.keeps:
            assert after["m-harbour"].text == "The lighthouse of Sandhammaren is painted red."
            assert after["m-harbour"].metadata == before["m-harbour"].metadata
        old = [hit.text for hit in hits(opened.backend, BOX, ASKED["m-harbour"])]
        assert HARBOUR.text not in old

    def test_amending_what_is_not_there_is_an_error(self, opened: Opened) -> None:
        """A change that changes nothing is told, once and for all."""
        opened.backend.reset(BOX)
        if not opened.keeps:
            return opened.backend.amend(BOX, "m-none", "text")  # takes everything
        with pytest.raises(BackendError, match="m-none") as raised:
            opened.backend.amend(BOX, "m-none", "text")
        assert raised.value.permanent

    def test_forgets_what_it_is_told_to(self, opened: Opened) -> None:
        """Forgotten ids are gone and the others stay; forgetting again is no error."""
        opened.backend.reset(BOX)
        plant(opened.backend, BOX, HARBOUR, FERRY, PIANO)
        for _ in range(2):
            opened.backend.forget(BOX, ["m-ferry", "m-never"])
            opened.backend.settle(BOX)
        found = answered(opened.backend, BOX, [HARBOUR, FERRY, PIANO])
        assert found == ["m-harbour", "m-piano"] * opened.keeps
        opened.backend.forget(BOX, ["m-piano"])
        with stamina.set_testing(True, attempts=1):  # what was planted last is not waited for
            opened.backend.settle(BOX)
        assert answered(opened.backend, BOX, [HARBOUR, FERRY, PIANO]) == ["m-harbour"] * opened.keeps

    def test_forgets_a_user(self, opened: Opened) -> None:
        """A forgotten user has nothing left, in any session; the others keep everything."""
        if "forget_user" not in opened.declared:
            assert "forget_user" not in opened.backend.capabilities
            return
        opened.backend.reset(BOX)
        plant(opened.backend, replace(ANNA, session="monday"), HARBOUR)
        plant(opened.backend, ANNA, FERRY)
        plant(opened.backend, BRUNO, HARBOUR)
        opened.backend.forget_user(ANNA)
        opened.backend.settle(BOX)
        assert answered(opened.backend, ANNA, [HARBOUR, FERRY]) == []
        assert answered(opened.backend, BRUNO, [HARBOUR]) == ["m-harbour"] * opened.keeps

    def test_counts_by_index(self, opened: Opened) -> None:
        """Counts are of the namespace, of all users, for each index, and follow every change."""
        if "count" not in opened.declared:
            assert "count" not in opened.backend.capabilities
            return
        counts = []
        opened.backend.reset(BOX)
        counts.append(opened.backend.count(BOX))
        plant(opened.backend, ANNA, HARBOUR, FERRY, PIANO)
        plant(opened.backend, BRUNO, HARBOUR)
        counts.append(opened.backend.count(BOX))
        opened.backend.amend(ANNA, "m-ferry", "The ferry is gone.")
        opened.backend.forget(ANNA, ["m-piano"])
        counts.append(opened.backend.count(BRUNO))
        if "forget_user" in opened.declared:
            opened.backend.forget_user(ANNA)
        else:
            opened.backend.forget(ANNA, ["m-harbour", "m-ferry"])
        counts.append(opened.backend.count(BOX))
        assert counts == [dict.fromkeys(opened.indexes, number) for number in (0, 4, 3, 1)]

    def test_survives_being_closed(self, opened: Opened) -> None:
        """What is durable is there when opened again, changes included; what is not is gone."""
        opened.backend.reset(BOX)
        plant(opened.backend, ANNA, HARBOUR, FERRY)
        opened.backend.amend(ANNA, "m-ferry", "The night ferry from Ystad leaves at 23:15.")
        opened.backend.forget(ANNA, ["m-harbour"])
        backend = opened.reopen()
        if "durable" not in opened.declared:
            assert "durable" not in backend.capabilities
            backend.reset(BOX)
            assert hits(backend, ANNA, ASKED["m-ferry"]) == ()
            return
        assert answered(backend, ANNA, [HARBOUR, FERRY]) == ["m-ferry"]
        assert hits(backend, ANNA, ASKED["m-ferry"])[0].text == "The night ferry from Ystad leaves at 23:15."

    def test_closing_twice_is_fine(self, opened: Opened) -> None:
        """A second close does nothing."""
        opened.backend.close()
        opened.backend.close()

    @pytest.mark.parametrize("namespace", ["", "production", "memtrend", "Memtrend-1", " memtrend-1"])
    def test_refuses_a_foreign_namespace(self, opened: Opened, namespace: str) -> None:
        """Reset never touches what memtrend cannot have made."""
        with pytest.raises(BackendError, match="not memtrend's") as raised:
            opened.backend.reset(Scope(namespace))
        assert raised.value.permanent

    @pytest.mark.parametrize("k", [1, 2, 4])
    def test_honours_k(self, opened: Opened, k: int) -> None:
        """At most k hits come back, but for the floor whose point it is to return all."""
        opened.backend.reset(BOX)
        memories = [
            Memory(f"m-{n}", f"The harbour master keeps boat number {n} at the gate.") for n in range(9)
        ]
        plant(opened.backend, BOX, *memories)
        expected = {"nothing": 0, "everything": 9}.get(opened.type, k)
        assert len(hits(opened.backend, BOX, "harbour master boat gate", k)) == expected

    def test_orders_ties_the_same_way(self, opened: Opened) -> None:
        """Equal calls give equal answers where that is declared; of equal scores ours order by id."""
        opened.backend.reset(BOX)
        order = [3, 1, 4, 0, 2]
        plant(opened.backend, BOX, *(Memory(f"m-{n}", "Two boats lie at the gate.") for n in order))
        answers = [ids(opened.backend, BOX, "Which boats lie at the gate?", 5) for _ in range(3)]
        if "deterministic" in opened.declared:
            assert answers[0] == answers[1] == answers[2]
        assert {frozenset(answer) for answer in answers} == {frozenset(answers[0])}
        if opened.type in ("keyword", "dense", "hybrid"):
            assert answers[0] == ["m-0", "m-1", "m-2", "m-3", "m-4"]

    @pytest.mark.parametrize("verb", sorted(OPTIONAL))
    def test_an_undeclared_verb_is_refused(self, opened: Opened, verb: str) -> None:
        """A verb works exactly where it is declared; elsewhere it raises for good."""
        opened.backend.reset(BOX)
        plant(opened.backend, BOX, PIANO)
        if verb in opened.backend.capabilities:
            OPTIONAL[verb](opened.backend)
            return
        with pytest.raises(BackendError, match=verb) as raised:
            OPTIONAL[verb](opened.backend)
        assert raised.value.permanent

    def test_asks_one_leg_alone(self, opened: Opened) -> None:
        """Each declared leg answers; one that it has not is refused."""
        opened.backend.reset(BOX)
        plant(opened.backend, BOX, HARBOUR, FERRY)
        for leg in opened.backend.legs:
            assert opened.backend.recall(BOX, ASKED["m-harbour"], 5, leg).hits[0].id == "m-harbour"
        with pytest.raises(BackendError, match="no leg 'graph'") as raised:
            opened.backend.recall(BOX, "harbour", 5, "graph")
        assert raised.value.permanent

    @pytest.mark.parametrize(
        "text",
        [
            "Straße, naïve, Łódź, İstanbul, ﬁn",
            "日本語のメモ、ここにある",
            "مرحبا بالعالم \u202e שלום",
            "👩‍👩‍👧‍👦 family at the gate 🚪",
            "line one\nline two\r\n\ttabbed\u2028separated",
            "a NUL \x00 in the middle",
            "lone \ud800 surrogate",
            '\'; DROP TABLE memory; -- "quoted" `ticks` %s {0} $1 \\',
            "e\u0301 decomposed, é composed",
        ],
    )
    def test_keeps_any_text(self, opened: Opened, text: str) -> None:
        """Texts come back as they were, but for lone surrogates, which become U+FFFD; ids too."""
        opened.backend.reset(BOX)
        plant(opened.backend, BOX, Memory(f"ïd {text}".replace("\ud800", ""), text))
        found = [(hit.id, hit.text) for hit in hits(opened.backend, BOX, text)]
        assert found == [(f"ïd {text}".replace("\ud800", ""), well_formed(text))] * opened.keeps

    @pytest.mark.parametrize(
        "name",
        ["o'brien", 'say "hi"', "a; DROP TABLE box; --", "émile 🚪", "*", "a/b:c@d.e", "%", "with blank"],
    )
    def test_takes_any_user_and_session(self, opened: Opened, name: str) -> None:
        """Names of users and sessions are names: they neither break a query nor stand for others."""
        opened.backend.reset(BOX)
        plant(opened.backend, ANNA, HARBOUR)
        mine = replace(BOX, user=name, session=name)
        assert hits(opened.backend, mine, ASKED["m-harbour"]) == ()
        plant(opened.backend, mine, HARBOUR)
        assert answered(opened.backend, mine, [HARBOUR]) == ["m-harbour"] * opened.keeps
        if "forget_user" in opened.declared:
            opened.backend.forget_user(mine)
        assert answered(opened.backend, ANNA, [HARBOUR]) == ["m-harbour"] * opened.keeps

    def test_may_be_called_from_any_thread(self, opened: Opened) -> None:
        """Verbs work on another thread than the one that opened the backend."""
        found: list[str] = []

        def work() -> None:
            opened.backend.reset(BOX)
            plant(opened.backend, BOX, HARBOUR)
            found.extend(answered(opened.backend, BOX, [HARBOUR]))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(60)
        assert found == ["m-harbour"] * opened.keeps

    def test_says_what_it_is(self, opened: Opened) -> None:
        """Versions are texts by name, fit for the fingerprint of a run."""
        versions = opened.backend.versions()
        assert all(isinstance(text, str) and text for pair in versions.items() for text in pair)


TEXTS = st.text(st.characters(codec=None), max_size=60)


class TestEmbedded:
    """What only our own stores promise."""

    @settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(text=TEXTS, query=TEXTS)
    @example(text='"', query='" OR "')
    @example(text="NEAR(a b, 2)", query="NEAR(a b, 2) AND NOT a* ^b col:x {a b}")
    @example(text="\x00", query="a\x00b")
    @example(text="\ud83d", query="\udc00")
    def test_any_text_is_a_safe_query(self, embedded: Backend, text: str, query: str) -> None:
        """No text to remember and no question raises, and what comes back is what was planted."""
        embedded.reset(BOX)
        plant(embedded, BOX, Memory("m-1", text), PIANO)
        for asked in (query, text):
            for hit in hits(embedded, BOX, asked):
                assert hit.text == {"m-1": well_formed(text), "m-piano": PIANO.text}[hit.id]

    @pytest.mark.parametrize("query", ["", " ", "\n\t", "?!", "\x00", "… —"])
    def test_a_question_without_words_finds_nothing_by_words(self, embedded: Backend, query: str) -> None:
        """Nothing to look for is no error."""
        embedded.reset(BOX)
        plant(embedded, BOX, PIANO)
        found = ids(embedded, BOX, query)
        if "keyword" in embedded.legs:
            assert embedded.recall(BOX, query, 5, "keyword").hits == ()
        if not query.strip():
            assert found == (["m-piano"] if embedded.legs == () else [])

    def test_a_million_lines_are_kept(self, embedded: Backend) -> None:
        """A memory of a million lines of garbage is stored whole, found, and forgotten."""
        line = "\x00garbage\ud800 zylophon\n"
        embedded.reset(BOX)
        plant(embedded, BOX, Memory("m-big", line * 1_000_000), PIANO)
        found = {hit.id: hit.text for hit in hits(embedded, BOX, "zylophon")}
        assert found["m-big"] == line.replace("\ud800", "\ufffd") * 1_000_000
        embedded.forget(BOX, ["m-big"])
        assert "m-big" not in ids(embedded, BOX, "zylophon")

    def test_a_long_question_is_answered(self, embedded: Backend) -> None:
        """Ten thousand different words are a question like any other."""
        embedded.reset(BOX)
        plant(embedded, BOX, PIANO)
        assert ids(embedded, BOX, " ".join(f"word{n}" for n in range(10_000)) + " piano") == ["m-piano"]

    def test_planting_an_id_again_replaces_it(self, embedded: Backend) -> None:
        """An id is one memory: the later text counts, in every index."""
        embedded.reset(BOX)
        plant(embedded, BOX, PIANO, HARBOUR)
        plant(embedded, BOX, replace(PIANO, text="The piano was sold to the school."))
        texts = [hit.text for hit in hits(embedded, BOX, "piano") if hit.id == "m-piano"]
        assert texts == ["The piano was sold to the school."]
        assert set(embedded.count(BOX).values()) == {2}

    @pytest.mark.parametrize(
        "verb", ["remember", "settle", "recall", "amend", "forget", "forget_user", "count"]
    )
    def test_an_unmade_namespace_is_an_error(self, embedded: Backend, verb: str) -> None:
        """Where nothing was reset nothing can be said, not even "no hits"."""
        arguments = {"remember": [[PIANO]], "recall": ["q", 5], "amend": ["m", "t"], "forget": [["m"]]}
        if verb == "settle":
            return embedded.settle(BOX)  # nothing to wait for, anywhere
        with pytest.raises(BackendError, match="does not exist in this store") as raised:
            getattr(embedded, verb)(BOX, *arguments.get(verb, []))
        assert raised.value.permanent

    def test_after_closing_every_call_is_an_error(self, embedded: Backend) -> None:
        """A closed store says so in our words, whatever is asked."""
        embedded.reset(BOX)
        embedded.close()
        for call in (lambda: embedded.recall(BOX, "q", 5), lambda: embedded.remember(BOX, [PIANO])):
            with pytest.raises(BackendError, match="closed") as raised:
                call()
            assert raised.value.permanent
