"""What no suite may tell: secrets, and details of a person."""

import pytest

from tests.collectors.lint.conftest import HARBOUR, NEAR, case

KEY = "ghp_" + "a1B2" * 9
SECRETS = [
    "postgres://admin:pw12@db.internal/prod",
    "wifi password=hunter2",
    "The password is hunter2.",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
]


@pytest.mark.parametrize("said", SECRETS)
def test_passwords_and_keys(said, checked):
    """Keys and passwords are secrets, and nothing else; no finding repeats them."""
    (found,) = checked.full(case(writes=[*NEAR, said]))
    assert found.rule == "secret"
    assert not any(word in found.message for word in ("pw12", "hunter2", "K7MDENG"))


@pytest.mark.parametrize(
    "said",
    [
        "Invoice 0151 2034 5567 was paid on 2026-03-04.",
        "Order 030-5567-12345 left the depot.",
        "Serial 0800 123 4567 8 is on the back; part 123-456-7890 is from the catalogue.",
        "Call 0800 123 4567 or +49 800 123 4567, free of charge.",
        "Call about invoice 0151 2034 5567.",
        "git clone git@github.com:acme/app.git, or deploy@build.acme.com:/srv, see https://me@acme.com/x",
        "npm i @scope/pkg; ISBN 978-3-16-148410-0; at 09:30 03-2026 0049-1234-5678",
        "The password is kept in the safe, the token is valid for 30 days, max_tokens=4096.",
        "Commit 0123456789abcdef0123456789abcdef01234567 broke sk-learn and sk_buff_head_init_long_name.",
    ],
)
def test_numbers_and_addresses_of_nobody(said, checked):
    """What is said to be of an order, a part or a repository is nobody's, and a word is no password."""
    assert checked(case(writes=[*NEAR, said])) == []


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Call Ana on 0176 55512345.", "a phone number"),
        ("Ana's number is 030-5567-12345", "a phone number"),
        ("(212) 867-5309 (mobile)", "a phone number"),
        ("Ana: +49 151 2034 5567", "a phone number"),
        ("Pay to DE89 3702 0044 0532 0130 00 please.", "an IBAN"),
        ("mailto:ana.real@gmail.com", "an e-mail address"),
    ],
)
def test_details_of_a_person(said, what, checked):
    """Each is told once, and as what it is."""
    (found,) = checked.full(case(writes=[*NEAR, said]))
    assert (found.rule, found.message.split(":")[0]) == ("personal-data", f"looks like {what}")


def test_wherever_it_stands(checked):
    """Metadata, patterns and worlds are looked through too; what a world holds is told once."""
    meta = case(writes=[{"text": NEAR[0], "metadata": {"token": KEY}}, *NEAR[1:]])
    assert checked(meta) == [(1, "kettle", "secret")]
    assert checked(case(expect_any=["shed", r"\bana\.real@gmail\.com"])) == [(1, "kettle", "personal-data")]
    world = [*HARBOUR, {"id": "x", "text": f"Use {KEY}.", "user": "runa"}]
    asked = [
        case(f"c{n}", world="harbour", writes=None, query=f"{n}?", expect_any=[r"\b7:40"]) for n in range(2)
    ]
    (found,) = checked.full(*asked, harbour=world)
    assert (found.rule, "world, x:" in found.message) == ("secret", True)


def test_a_secret_is_not_repeated(checked):
    """No finding shows a key: neither the one about it, nor one about a case or pattern that is one."""
    (found,) = checked.full(case(writes=[*NEAR, f"The token is {KEY}."]))
    assert "a1B2a1B2" not in found.message
    key = f"ghp_{'z9Y8' * 9}"
    told = checked.full(
        {"id": key, "query": "which?", "expect_any": [key], "writes": ["a shed"], "source": "x"}
    )
    assert {"underivable", "secret"} <= {one.rule for one in told}
    assert not any(key in (one.case, *one.message.split("'")) for one in told)
