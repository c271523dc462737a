"""`memtrend report`: what it prints, writes and refuses."""

import json

import pytest

from store import writes
from store.records import SuiteRecord
from tests.collectors.playground import KEYS, opened

pytestmark = pytest.mark.usefixtures("no_pauses")
TEXTS = [f"the {key} key" for key in KEYS[:4]]


@pytest.fixture
def asked(folder, ask):
    """A folder in which the suite was run on one backend: (folder, call)."""
    assert ask(folder, "run", "--suite", "small").returncode == 0
    return folder, lambda *arguments: ask(folder, "report", *arguments)


def test_every_form(asked):
    """Text on stdout, and HTML, Markdown and JSON of the same run, without a memory in any of them."""
    folder, report = asked
    told = report("1")
    assert told.returncode == 0
    assert "Did it change?" in told.stdout
    written = report("1", "--html", "r.html", "--md", "r.md", "--json")
    assert written.stderr.splitlines() == ["written: r.html", "written: r.md"]
    document = json.loads(written.stdout)
    assert (document["report"], document["run"]["id"]) == ("run", 1)
    html, markdown = ((folder / name).read_text(encoding="utf-8") for name in ("r.html", "r.md"))
    assert document["title"] in markdown
    for form in (told.stdout, written.stdout, html, markdown):
        assert "case-" in form
        assert not [text for text in TEXTS if text in form]


def test_a_week(asked):
    """What changed this week; nothing of a week in which nothing happened."""
    _, report = asked
    assert "What is to be decided?" in report("--week").stdout
    assert json.loads(report("--week", "--json").stdout)["series"][0]["suite"] == "small"
    quiet = report("--week", "--until", "2001-02-03")
    assert (quiet.returncode, quiet.stdout) == (3, "")
    assert "nothing happened in the week to 2001-02-" in quiet.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        ((), 2, "name a run, or ask for --week"),
        (("1", "--week"), 2, "name a run, or ask for --week"),
        (("1", "--until", "2026-03-01"), 2, "--until goes with --week"),
        (("--week", "--include-text"), 2, "a week tells no texts"),
        (("--week", "--until", "soon"), 2, "should be a date or time"),
        (("1", "--html", "none/r.html"), 2, "cannot write none/r.html"),
        (("99",), 3, "no run 99"),
    ],
)
def test_refusals(asked, arguments, code, why):
    """What cannot be meant ends with 2, what there is not with 3: with a reason, and nothing is printed."""
    _, report = asked
    done = report(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert why in done.stderr


def test_texts_when_asked(asked):
    """With --include-text, questions and what came back first are told, unless the licence forbids it."""
    folder, report = asked
    assert [text for text in TEXTS if text in report("1", "--json", "--include-text").stdout]
    db = opened(folder)
    writes.register_suite(db, SuiteRecord("small", "golden", "own", "v", 0, (), licence="CC-BY-NC-4.0"))
    db.close()
    refused = report("1", "--include-text", "--html", "r.html")
    assert refused.returncode == 2
    assert "small is under CC-BY-NC-4.0" in refused.stderr
    assert not (folder / "r.html").exists()
    assert "Licence: CC-BY-NC-4.0" in report("1").stdout


def test_a_configured_licence(folder, ask):
    """Licence and citation of a configured suite stand beneath its report and in its export."""
    config = (folder / "memtrend.toml").read_text()
    told = 'licence = "CC-BY-4.0"\ncitation = "Doe 2026"\n'
    section = "[suites.small]\n"
    assert section in config
    (folder / "memtrend.toml").write_text(config.replace(section, section + told))
    assert ask(folder, "run", "--suite", "small").returncode == 0
    assert "small: Licence: CC-BY-4.0. Cite: Doe 2026." in ask(folder, "report", "1").stdout
    assert ask(folder, "export").stdout.splitlines()[1].endswith("CC-BY-4.0,Doe 2026")
