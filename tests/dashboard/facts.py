"""What the cases of the seeded record are told and asked, and text that tries to be markup."""

from __future__ import annotations

from typing import NamedTuple

HOSTILE = (
    "<script>alert(1)</script> **bold** `tick` $x^2$ [link](http://evil.example) :red[no] "
    "<img src=x onerror=alert(2)>"
)
"""Must appear on the pages as just these characters."""

HOSTILE_CASE = "odd-<b>name</b>-`$x$`"


class Fact(NamedTuple):
    """What a case is told and asked. `old` is what must not come first."""

    tag: str
    slug: str
    old: str
    new: str
    asked: str
    pattern: str


FACTS = (
    Fact(
        "supersession",
        "bakery-flour",
        "We order flour from Kornmann, 25 kg bags.",
        "Since May the flour comes from Halm & Sohn.",
        "Who delivers our flour?",
        r"Halm",
    ),
    Fact(
        "supersession",
        "locker-code",
        "The gym locker opens with 4471.",
        "They changed the locker: it is 9026 now.",
        "What opens my locker?",
        r"\b9026\b",
    ),
    Fact(
        "supersession",
        "choir-evening",
        "Choir is on Wednesdays at seven.",
        "From autumn on we sing on Mondays.",
        "Which evening do I sing?",
        r"Monday",
    ),
    Fact(
        "preference",
        "window-seat",
        "My brother always takes the aisle.",
        "By the window, please, and never over the wing.",
        "Where do I like to sit on a plane?",
        r"window",
    ),
    Fact(
        "preference",
        "tea-no-sugar",
        "Ines takes two sugars.",
        "Tea without anything in it, for me.",
        "How do I take my tea?",
        r"without",
    ),
    Fact(
        "identifier",
        "invoice-8812",
        "Invoice 8821 was paid in March.",
        "Invoice 8812 is disputed by the printer.",
        "What about 8812?",
        r"8812.*disputed",
    ),
    Fact(
        "identifier",
        "host-brink",
        "brink-03 serves the maps.",
        "brink-07 is the one with the bad fan.",
        "Which host has the bad fan?",
        r"brink-07",
    ),
    Fact(
        "temporal",
        "dentist-moved",
        "Dentist on Tuesday the 4th.",
        "The dentist moved me to Thursday the 6th.",
        "When do I see the dentist?",
        r"\b6th\b",
    ),
    Fact(
        "temporal",
        "lease-ends",
        "The lease of the old flat ended in June.",
        "This lease runs until the end of February.",
        "Until when may I stay here?",
        r"February",
    ),
    Fact(
        "speaker",
        "who-cycles",
        "Rosa cycles to work.",
        "I take the tram, rain or shine.",
        "How do I get to work?",
        r"tram",
    ),
    Fact(
        "domain",
        "key-neighbour",
        "The office key hangs in the pantry.",
        "Our spare key is with Mrs Oyelaran.",
        "Who has our spare key?",
        r"Oyelaran",
    ),
    Fact(
        "forgetting",
        "old-number",
        "Dad's old number ends in 7713.",
        "Dad's surgery is on the 9th at noon.",
        "When is the surgery?",
        r"\b9th\b",
    ),
    Fact(
        "isolation",
        "salary-of-others",
        "Kemal earns 71,000.",
        "My own raise starts in April.",
        "When does my raise start?",
        r"April",
    ),
)

BACKGROUND = (
    "The kettle trips the fuse when the oven is on.",
    "Parking behind the library is free after six.",
    "Rosa's exhibition opens on a Friday.",
    "The ferry takes bicycles, but no trailers.",
    "Our router likes to be restarted on Sundays.",
)
