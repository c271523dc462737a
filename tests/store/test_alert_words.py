"""Alerts as sentences, and the facts that messages are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from store import alert_words
from store.alert_kinds import KINDS
from store.alert_life import Facts, Incident, Step, acknowledge, advance, unlooked
from store.sightings import ClosedRun, Key, Leg, Measured, Sighting, Standing, missed, sightings
from tests.store.told import control, leaking, moved, verdict, worse

AT = datetime(2026, 3, 4, 3, tzinfo=UTC)
HOSTILE = "<!channel> *x* & \u202e\n`"


def incident(*seen: Sighting, **facts: Any) -> Incident:
    (turned,) = advance([], seen, Facts(AT, 7, **facts))
    return turned.incident._replace(id=12)


def of(kind: str, content: dict[str, Any], subject: str = "", standing: Standing = "sure") -> Incident:
    return incident(Sighting(Key(kind, "golden", "mem0", subject), standing, 0.1, ("a", "b"), content))


def of_run(kind: str, **fields: Any) -> Incident:
    """What a closed run makes of one kind."""
    run = ClosedRun("golden", "mem0", **{"status": "whole", **fields})
    return incident(*(one for one in sightings(run) if one.key.kind == kind and one.standing != "clear"))


def one_moved(metric: str) -> dict[str, Any]:
    return dict(verdict(moved=moved(metric, "confirmed"))["moved"][0])


RATE = {"pass": Measured(40, 0.8, 0.7, 0.88)}
EVERY = {
    "critical": (
        of_run("critical", verdict=worse("suspected", critical=("a",))),
        "mem0 on golden lost 1 critical case",
        "a failed in at least 3 of 4 trials.",
    ),
    "regression": (of("regression", worse()), "mem0 on golden got worse", "2 of 40 cases"),
    "improvement": (of("improvement", worse(side="better")), "mem0 on golden got better", "2 of 40 cases"),
    "leak": (
        of_run("leak", verdict=leaking(), measured=RATE),
        "mem0 on golden loses a little every week",
        "The pass rate sank slowly from 90.0 % to 80.0 %, from run 3 on",
    ),
    "threshold": (
        of_run("threshold", measured=RATE, bars={"pass": 0.9}),
        "mem0 on golden: pass rate is beyond its bar",
        "n 40; it should be at least 90.0 %.",
    ),
    "shrinkage": (
        of_run("shrinkage", legs=[Leg("vector", 900, 1000)]),
        "The index of mem0 shrinks",
        "The vector index holds 900 of 1,000 memories (90.0 %).",
    ),
    "failing": (
        of_run("failing", status="void"),
        "mem0 on golden could not be measured",
        "its adapter is broken",
    ),
    "missed": (
        incident(*missed({"nightly": ["2026-03-04T03:00Z"]}, [])),
        "Schedule nightly did not run",
        "It should have run once, last at 2026-03-04 03:00 UTC",
    ),
    "slower": (
        of("slower", one_moved("recall_ms"), "recall_ms"),
        "mem0 on golden got slower",
        "50 %",
    ),
    "dearer": (
        of(
            "dearer",
            dict(verdict(moved=moved("returned_tokens", "confirmed"))["moved"][0]),
            "returned_tokens",
        ),
        "mem0 on golden got dearer",
        "50 %",
    ),
    "judge": (of("judge", {"reason": "It accepts vague answers."}, "gpt"), "Judge gpt drifts", "vague"),
    "proof": (
        of("proof", {"reason": "No drill has arrived."}),
        "The alarm itself was not proven",
        "No drill",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_words(kind: str) -> None:
    """A title that says what and where, evidence that says why, and a message of both."""
    it, title, evidence = EVERY[kind]
    assert alert_words.title(it) == title
    assert evidence in alert_words.evidence(it)
    told = alert_words.message(it, Step("opened"), "alert 12 step 1 channel team")
    assert (told.title, told.kind, told.severity) == (title, kind, KINDS[kind].severity)
    assert told.evidence == alert_words.evidence(it)


def test_legs_that_disagree() -> None:
    """Each leg with its count."""
    it = of_run("shrinkage", legs=[Leg("keyword", 1000, None), Leg("vector", 900, None)])
    assert alert_words.evidence(it) == "Its indexes disagree: keyword 1,000 and vector 900 memories."


def test_of_several_series() -> None:
    """One is named, and how many more there are."""
    keys = [Key("failing", suite, "mem0") for suite in ("golden", "own", "contract")]
    it = incident(*(Sighting(key, "sure", 1.0, content={"status": "void"}) for key in keys))
    assert alert_words.title(it).endswith("could not be measured, and 2 series more")


def test_badges() -> None:
    """What is open says what it is about; what is over, or not told yet, its state."""
    it = of("regression", worse())
    assert alert_words.badge(it) == "Worse"
    assert alert_words.badge(acknowledge(it, "ann").incident) == "Worse"
    assert alert_words.badge(of("regression", worse("suspicion"), standing="suspicion")) == "Suspicion"
    assert {alert_words.badge(it._replace(state=state)) for state in ("resolved", "died")} == {  # type: ignore[arg-type]
        "Resolved", "Came to nothing",
    }  # fmt: skip


def test_a_look_that_is_not_taken_is_told() -> None:
    """Beside the evidence, while it is suspected."""
    it = of("regression", worse("suspected"), standing="suspected")
    said = alert_words.evidence(unlooked(it, "asking once more would cost about $9.00").incident)
    assert said.endswith("It stays suspected: asking once more would cost about $9.00.")


def test_the_facts_of_a_message() -> None:
    """Figures, three cases and how many more, losses by kind, tags, suspects, what the control says."""
    told = worse("confirmed", lost=("a", "b", "c", "d"), control=control("backend"))
    suspects = [{"sentence": f"thing {n}"} for n in range(5)]
    context = {"at": "2026-03-04T03:00:00+00:00", "failures": {"not stored": 4}, "tags": [["keys", 4, 9]]}
    seen = Sighting(Key("regression", "golden", "mem0"), "sure", 0.1, ("a", "b", "c", "d"), told)
    it = incident(seen, suspects=suspects, context=context, owner="team")
    step = Step("resolved", "mended", "ann")
    found = alert_words.message(it, step, "key", "https://memtrend.example.org/")
    assert [case.name for case in found.cases] == ["a", "b", "c"]
    assert (found.more_cases, found.failures, found.tags) == (1, {"not stored": 4}, ("keys 4 of 9",))
    assert found.suspects == ("thing 0", "thing 1", "thing 2")
    assert (found.owner, found.reason, found.since) == ("team", "mended", context["at"])
    assert found.control
    assert found.difference
    assert found.texts == ()


def test_links_open_pages_and_nothing_else() -> None:
    """Every address is one of the dashboard, its parameters escaped; without a base there are none."""
    key = Key("regression", HOSTILE, HOSTILE)
    it = incident(Sighting(key, "sure", 0.1, (HOSTILE,), worse()))
    assert alert_words.message(it, Step("opened"), "key").urls == {}
    told = alert_words.message(it, Step("opened"), "key", "https://memtrend.example.org/base")
    for url in (*told.urls.values(), told.cases[0].url):
        assert url.startswith("https://memtrend.example.org/base/")
        assert not set(url) & set("<>\n\u202e `*!")
    case = parse_qs(urlsplit(told.cases[0].url).query)
    assert case == {"suite": [HOSTILE], "case": [HOSTILE], "backend": [HOSTILE], "run": [str(told.run_id)]}
    assert told.urls["acknowledge"].endswith("alert?alert=12&do=acknowledge")


def test_a_link_leads_to_what_there_is() -> None:
    """What is over, or somebody has, is not to be acknowledged; and what a drill measured is on no page but
    that of its alert."""
    it, base = of("regression", worse()), "https://memtrend.example.org"
    for state in ("suspected", "acknowledged", "resolved", "intended"):
        urls = alert_words.message(it._replace(state=state), Step("opened"), "key", base).urls
        assert urls.keys() == {"open", "run", "trend"}
    seen = [one._replace(run_id=None) for one in it.signals]
    drill = alert_words.message(it._replace(drill=True, signals=tuple(seen)), Step("opened"), "key", base)
    assert drill.urls.keys() == {"open", "acknowledge"}
    assert {one.url for one in drill.cases} == {""}


def test_a_message_leads_to_the_comparison_of_the_last_good_run_with_the_first_bad_one() -> None:
    """Both are named in the address; without a good run there is nothing to compare with, nor of a drill."""
    it, base = of("regression", worse()), "https://memtrend.example.org"
    it = it._replace(last_good_run_id=3)
    urls = alert_words.message(it, Step("opened"), "key", base).urls
    first = alert_words.lead(it).first_run_id
    suite = alert_words.lead(it).key.suite
    assert parse_qs(urlsplit(urls["compare"]).query) == {"suite": [suite], "a": ["3"], "b": [str(first)]}
    for other in (it._replace(drill=True), it._replace(last_good_run_id=None)):
        assert "compare" not in alert_words.message(other, Step("opened"), "key", base).urls


@pytest.mark.parametrize(("kind", "critical"), [("critical", ("a",)), ("regression", ())])
def test_a_young_baseline_is_told(kind: str, critical: tuple[str, ...]) -> None:
    """How much nights differ is not known yet, so a mood of this one may look like a fall."""
    for provisional in (False, True):
        told = worse(critical=critical, provisional=provisional, days=2)
        said = alert_words.evidence(of_run(kind, verdict=told))
        assert said.endswith("Provisional: its baseline is of 2 days.") == provisional, said


UNTAKEN = "asking again would cost about $9.00, more than max_cost = 1"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("critical", worse("suspicion", critical=("a",), untaken=UNTAKEN)),
        ("regression", worse("suspicion", untaken=UNTAKEN)),
        ("slower", verdict(moved=moved("recall_ms", "suspicion"), untaken=UNTAKEN)),
    ],
)
def test_a_suspicion_says_why_it_stays_one(kind: str, told: dict[str, Any]) -> None:
    """Whatever is suspected, once: a look that would cost too much was not taken."""
    measured = RATE | {"recall_ms": Measured(40, 12.0, 10.0, 14.0)}
    said = alert_words.evidence(of_run(kind, verdict=told, measured=measured))
    assert said.count("more than max_cost = 1.") == 1, said
