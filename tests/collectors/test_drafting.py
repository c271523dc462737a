"""From a conversation to a draft case: without personal details, and unfit to load before it is finished."""

import json

import pytest

from collectors.drafting import append, draft
from collectors.personal import without_personal_details
from collectors.suite import SuiteConfig, SuiteError, load

TICKET = """\
Ada Brennan: Hi Tomas, my order number is QX-4711 and I moved to 14 Rosewood Lane.
Reach me on +44 7700 900123 or ada.b@example.org.
Agent: Thanks Ada, noted. I will write to ada.b@example.org.
Ada Brennan: Brennan is on the bell. Where will order QX-4711 go?
Agent: To 14 Rosewood Lane, Ms Brennan.
"""
SECRETS = ("Ada", "Brennan", "Tomas", "4711", "Rosewood", "7700", "example.org")


def write(folder, text, name="ticket.txt"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def drafted(folder, text, **more):
    return json.loads(draft(write(folder, text), **more))


def test_a_ticket(tmp_path):
    """What was said is planted with its speaker's role, the last question of the user's side is asked, and
    the answer that was given is a hint for whoever finishes it."""
    case = drafted(tmp_path, TICKET)
    assert case["writes"] == [
        "Hi PERSON_2, my order number is NUMBER_1 and I moved to ADDRESS_1.\nReach me on PHONE_1 or EMAIL_1.",
        {"text": "Thanks PERSON_1, noted. I will write to EMAIL_1.", "role": "assistant"},
        "PERSON_1 is on the bell.",
    ]
    assert case["query"] == "Where will order NUMBER_1 go?"
    assert "the answer then was: To ADDRESS_1, Ms PERSON_1." in case["expect_any"][0]
    assert not any(secret in json.dumps(case) for secret in SECRETS)


def test_placeholders_are_stable(tmp_path):
    """The same conversation makes the same draft, and a detail has one placeholder however it is written."""
    assert draft(write(tmp_path, TICKET)) == draft(write(tmp_path, TICKET, "anders.txt"))
    told = without_personal_details(["call +44 7700 900123", "or +44 (7700) 900-123, not +44 7700 900999"])
    assert told == ["call PHONE_1", "or PHONE_1, not PHONE_2"]


def test_jsonl(tmp_path):
    """Turns of {role, content} make the same draft as text; a line that is none is named."""
    turns = [("customer", "My tank holds 40 litres."), ("bot", "Noted."), ("user", "How big is my tank?")]
    lines = [json.dumps({"role": role, "content": content}) for role, content in turns]
    case = drafted(tmp_path, "\n".join(lines) + "\n")
    assert case["writes"] == ["My tank holds 40 litres.", {"text": "Noted.", "role": "assistant"}]
    assert case["query"] == "How big is my tank?"
    with pytest.raises(SuiteError, match=r'ticket.txt:4: should be \{"role"'):
        drafted(tmp_path, "\n".join([*lines, '{"role": "user"}']))


def test_paragraphs(tmp_path):
    """Text without speakers is one turn a paragraph; without a question, the question is to be filled in."""
    case = drafted(tmp_path, "The alarm rings at six.\n\nIt is a loud one: truly.", id="alarm")
    assert (case["id"], case["writes"]) == ("alarm", ["The alarm rings at six.", "It is a loud one: truly."])
    assert case["query"].startswith("<fill in: the question")


def finished(case, **more):
    return {**case, "expect_any": ["rosewood|ADDRESS_1"], "tags": ["recall"], **more}


def loading(folder, case):
    return load(SuiteConfig("mine", write(folder, json.dumps(case), "mine.jsonl")))


@pytest.mark.parametrize("text", [TICKET, "Nothing is asked here."])
def test_a_draft_does_not_load(tmp_path, text):
    """A draft is refused with the field to fill in, until a person has filled in all of them; taking the
    markers out without an expectation helps nobody."""
    case = drafted(tmp_path, text)
    with pytest.raises(SuiteError, match=r"mine.jsonl:1: expect_any\.0: is still a draft"):
        loading(tmp_path, case)
    with pytest.raises(SuiteError, match="should have at least one of expect_any"):
        loading(tmp_path, {**finished(case, query="where?"), "expect_any": []})
    with pytest.raises(SuiteError, match=r"tags\.0: is still a draft"):
        loading(tmp_path, {**case, "expect_any": ["x"]})
    assert sum(1 for _ in loading(tmp_path, finished(case, query="where?")).probes) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Dear Dr. Okafor, my name is Lena Voss.", "Dear Dr. PERSON_1, my name is PERSON_2."),
        ("Thanks!\nBest regards,\nIlse de Boer", "Thanks!\nBest regards,\nPERSON_1"),
        ("My sister Maren and Maren's dog", "My sister PERSON_1 and PERSON_1's dog"),
        ("I'm Youssef, this is Priya.", "I'm PERSON_1, this is PERSON_2."),
        ("Ich wohne in der Lindenstraße 12b, 10115", "Ich wohne in der ADDRESS_1, 10115"),
        ("see https://shop.example.org/o/77?k=1 now", "see LINK_1 now"),
        ("ticket #88123 and account no. 00441", "ticket #NUMBER_1 and account no. NUMBER_2"),
        ("My wifi password is greenhouse", "My wifi password is SECRET_1"),
        ("postgres://admin:pw12@host/db", "postgres://admin:SECRET_1@host/db"),
        ("username: mariaL, born on 2 March 1984", "username: USER_1, born on DATE_1"),
        ("Please call Jonas Weber's wife. Weber knows.", "Please call PERSON_1's wife. PERSON_1 knows."),
        ("IBAN DE89 3704 0044 0532 0130 00, card 4111 1111 1111 1111", "IBAN NUMBER_1, card NUMBER_2"),
    ],
)
def test_what_is_found(text, told):
    """Names that greetings, titles, kin, introductions and signatures give away, addresses and numbers."""
    assert without_personal_details([text]) == [told]


TELLING = """\
Maria Lopez: Hi, my account is maria.l and my password is hunter2. SSN 078-05-1120, born 1984-03-02.
Agent: Hello Maria. Your colleague Jonas Weber called from 10.0.0.12.
Maria Lopez: Jonas lives at Hauptstraße 5 in 20095 Hamburg. API key sk-abcdefghijklmnop1234.
WhatsApp @marial84. maria.l still has hunter2. Call Weber on 0176 55512345. Where is my parcel?
Agent: It's with Peter Novak.
"""


def test_a_ticket_that_tells_much(tmp_path):
    """Secrets, names of accounts and of persons, addresses and a date of birth are replaced in what was said
    and in the hint, again where they stand without the word that gave them away."""
    case = drafted(tmp_path, TELLING)
    first, second, third = case["writes"]
    assert first == "Hi, my account is USER_1 and my password is SECRET_1. SSN NUMBER_1, born DATE_1."
    assert second["text"] == "Hello PERSON_1. Your colleague PERSON_2 called from IP_1."
    assert third == (
        "PERSON_2 lives at ADDRESS_1 in ADDRESS_2. API key SECRET_2. "
        "WhatsApp USER_2. USER_1 still has SECRET_1. Call PERSON_2 on PHONE_1."
    )
    assert "It's with PERSON_3." in case["expect_any"][0]
    assert "read it" in case["source"]


@pytest.mark.parametrize(
    "text",
    [
        '[{"role": "user", "content": "Where is it?"}]',
        '[{"role": "user",\n "content": ',
        '"Where is it?"',
        '["user", "Where?"]\n["bot", "Here."]\n',
    ],
)
def test_json_that_is_no_jsonl_of_turns_is_refused(tmp_path, text):
    """Other JSON makes no case: it is refused with what is wanted."""
    with pytest.raises(SuiteError, match="no JSONL of turns"):
        drafted(tmp_path, text)


def test_a_line_that_begins_with_a_bracket_is_text(tmp_path):
    """The time of a chat is no JSON."""
    assert drafted(tmp_path, "[10:32] The tank is full.")["writes"] == ["[10:32] The tank is full."]


def test_a_speaker_in_place_of_a_role(tmp_path):
    """A name for a role is replaced like any other, and speaks for the user."""
    case = drafted(tmp_path, json.dumps({"role": "Maria", "content": "Maria has a tank."}))
    assert case["writes"] == ["PERSON_1 has a tank."]


@pytest.mark.parametrize("before", ["", "{}", "{}\n"])
def test_a_draft_stands_on_a_line_of_its_own(tmp_path, before):
    """Whether or not the last line of the file ends in a line break."""
    path = write(tmp_path, before, "mine.jsonl")
    append("one\n", path)
    append("two\n", path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines == [*([before.strip()] if before else []), "one", "two"]


@pytest.mark.parametrize(
    "text",
    [
        "Hi there, I am Sorry to ask again. Hello Could you help?",
        "On 2026-03-04 at 09:30 we set 1200 ms and 3.5.2, see PAYGW_US_READ_MS",
        "from 4.3.2026 to 12/11/2026 in order to save 40 %",
        "The password is wrong, my account is locked, the username is unknown.",
        "Order Number and New York on Monday March 3, see @scope/pkg",
        "My order is late, in case it matters; the account holder pays.",
    ],
)
def test_what_is_none(text):
    """Dates, versions, amounts, identifiers and plain words stay: the case would lose its point."""
    assert without_personal_details([text]) == [text]


def test_command(tmp_path, ask):
    """`suite draft` prints one line on stdout, or adds it to a file; a file that holds nothing is refused."""
    write(tmp_path, TICKET)
    shown = ask(tmp_path, "suite", "draft", "--from", "ticket.txt")
    assert (shown.returncode, json.loads(shown.stdout)["query"]) == (0, "Where will order NUMBER_1 go?")
    for _ in range(2):
        ask(tmp_path, "suite", "draft", "--from", "ticket.txt", "-o", "mine.jsonl")
    assert (tmp_path / "mine.jsonl").read_text(encoding="utf-8") == shown.stdout * 2
    write(tmp_path, "\n", "empty.txt")
    assert ask(tmp_path, "suite", "draft", "--from", "empty.txt").returncode == 2
