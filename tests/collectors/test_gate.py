"""The gate: what it fails on, what it exits with, and what it writes, in projects of a few cases."""

import json
import subprocess
from contextlib import closing
from xml.etree import ElementTree

import pytest

from collectors import arm
from store import portable, queries
from store.hiding import HIDDEN
from tests.collectors.playground import KEYS, case, opened, project, soon, write_suite

SECRET = "sk-pl4nted-s3cret"
BACKEND = f"""
[database]
url = "sqlite:///record.db"
[backends.mine]
type = "tests.collectors.odd_backends:Keyed"
api_key = "{SECRET}"
"""
SUITE = '[suites.mine]\npath = "mine.jsonl"\n'
LINES = [case(key) for key in KEYS]
LINES[0] = case(KEYS[0], critical=True)
SERIES = ("--suite", "mine", "--backend", "mine")
GATE = ("gate", *SERIES)


def config(lost="\0", **suite):
    """Texts with a word of `lost` are never kept."""
    more = "".join(f"{name} = {value}\n" for name, value in suite.items())
    return f"{BACKEND}lost = {json.dumps(lost)}\n{SUITE}{more}"


class Project:
    """A folder with a suite and a backend, in which memtrend is asked."""

    def __init__(self, folder, ask, lines=LINES):
        folder.mkdir(exist_ok=True)
        self.folder, self.ask = project(folder, config(), lines, "mine"), ask

    def set(self, lost="\0", **suite):
        (self.folder / "memtrend.toml").write_text(config(lost, **suite))

    def lines(self, lines):
        write_suite(self.folder / "mine.jsonl", lines)

    def __call__(self, *arguments):
        return self.ask(self.folder, *arguments)

    def gate(self, *arguments):
        """Exit code and document."""
        ran = self(*GATE, "--json", *arguments)
        assert ran.stdout, ran.stderr
        return ran.returncode, json.loads(ran.stdout)


@pytest.fixture
def mine(tmp_path, ask, monkeypatch):
    for name in ("GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path / "one", ask)


@pytest.fixture
def primed(mine):
    assert mine("baseline", "prime", *SERIES).returncode == 0
    return mine


# What it fails on


def test_without_a_baseline_there_is_no_answer(mine):
    """The first gate makes a baseline of five trials, exits 3, and the next is held against it."""
    code, told = mine.gate()
    assert (code, told["passed"], told["failed"], told["written"]) == (3, False, [], "the record")
    with closing(opened(mine.folder)) as db:
        run = queries.run(db, told["run"])
    assert (run.trials, run.trigger) == (5, queries.PRIME)
    code, told = mine.gate()
    assert (code, told["passed"], told["baseline"]) == (0, True, [run.id])


def test_strict(mine):
    """With --strict no answer is a failure."""
    assert mine.gate("--strict")[0] == 1


def test_a_backend_that_got_worse(primed):
    """Cases that passed and do not now fail the gate by name, after a second look of three trials."""
    primed.set(lost="e key")
    code, told = primed.gate()
    assert (code, told["verdict"], told["stage"], told["failed"]) == (1, "worse", "suspected", ["change"])
    assert sorted(told["lost"]) == sorted(f"case-{key}" for key in KEYS if key.endswith("e"))
    assert [look["trials"] for look in told["looks"]] == [1, 3]


def test_trials_of_the_second_look_and_their_cost(primed):
    """A suite says how a suspicion is looked at again, and what that may cost: past it there is no answer."""
    primed.set(lost="r key", confirm="{ trials = 5 }")
    assert [look["trials"] for look in primed.gate()[1]["looks"]] == [1, 5]
    primed.set(lost="r key", confirm="{ max_cost = 0.001 }")
    code, told = primed.gate()
    assert (code, told["verdict"]) == (3, "cannot_tell")
    assert "max_cost" in told["evidence"]


def test_a_critical_case(primed):
    """One critical case that is lost in all of four trials fails the gate, whatever its share."""
    primed.set(lost=f"{KEYS[0]} key")
    code, told = primed.gate()
    assert (code, told["critical"]) == (1, [f"case-{KEYS[0]}"])
    assert "critical" in told["failed"]


def test_a_ship_bar(primed):
    """A suite's bar fails the gate when its metric is past it, in the direction that is bad, and when nothing
    measured it."""
    primed.set(bars="{ pass = 0.9, returned_n = 1.0 }")
    code, told = primed.gate()
    assert (code, [bar["met"] for bar in told["bars"]]) == (0, [True, True])
    primed.set(bars="{ returned_n = 0.5, error_rate = 0.1 }")
    code, told = primed.gate()
    assert (code, told["failed"], told["verdict"]) == (1, ["ship_bar"], "unchanged")
    assert [bar["met"] for bar in told["bars"]] == [False, True]
    primed.set(bars="{ leg_share = 1.0 }")
    assert primed.gate()[1]["bars"] == [{"metric": "leg_share", "bar": 1.0, "value": None, "met": False}]


def test_a_first_run_below_its_bar(mine):
    """A backend below its bar is no baseline: no file is written, and the gate fails."""
    mine.set(lost=" key", bars="{ pass = 0.9 }")
    code, told = mine.gate("--baseline", "base.json")
    assert (code, told["failed"], told["written"]) == (1, ["ship_bar"], None)
    assert not (mine.folder / "base.json").exists()


def test_a_missing_case(primed):
    """A case that is asked no more fails the gate until somebody retires it."""
    primed.lines(LINES[:-1])
    gone = f"case-{KEYS[-1]}"
    code, told = primed.gate()
    assert (code, told["failed"], told["missing"]) == (1, ["missing"], [gone])
    assert primed("suite", "retire", gone, "--suite", "mine", "--reason", "sold").returncode == 0
    assert primed.gate()[0] == 0


def test_cases_that_decide_nothing(primed):
    """A case in quarantine and a new one are listed, and their loss fails nothing."""
    key = KEYS[0]
    told = ("--owner", "noor", "--reason", "flaky", "--until", soon())
    assert primed("suite", "quarantine", f"case-{key}", "--suite", "mine", *told).returncode == 0
    primed.lines([*LINES, case("zebra")])
    primed.set(lost=f"{key} key", bars="{ pass = 1.0 }")
    code, told = primed.gate()
    assert (code, told["quarantined"], told["on_trial"]) == (0, [f"case-{key}"], ["case-zebra"])


def test_a_margin(tmp_path, ask, primed):
    """Non-inferiority is asked beside the change: 16 cases that agree settle a wide margin, not a narrow one,
    and a loss beyond it is inferior."""
    code, told = primed.gate("--margin", "0.2")
    assert (code, told["margin"]["verdict"]) == (0, "non_inferior")
    code, told = primed.gate("--margin", "0.03")
    assert (code, told["margin"]["verdict"], told["margin"]["needed"]) == (3, "inconclusive", 88)
    primed.set(lost=" key")
    code, told = primed.gate("--margin", "0.03")
    assert code == 1
    assert "margin" in told["failed"]


def test_a_run_that_is_not_whole(primed):
    """A backend that cannot be asked is no regression: there is no answer, and why is said, in the files and
    the document that were asked for too."""
    text = (primed.folder / "memtrend.toml").read_text()
    (primed.folder / "memtrend.toml").write_text(text.replace("Keyed", "Missing"))
    ran = primed(*GATE, "--json", "--junit", "gate.xml", "--md", "gate.md")
    assert ran.returncode == 3
    assert "no answer: void" in ran.stderr
    told = json.loads(ran.stdout)
    assert (told["verdict"], told["passed"], told["failed"]) == ("cannot_tell", False, [])
    assert "no answer: void" in told["evidence"]
    (suite,) = ElementTree.parse(primed.folder / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")
    assert "no answer" in (primed.folder / "gate.md").read_text()
    assert primed(*GATE, "--strict").returncode == 1


def test_a_deterministic_backend(mine):
    """Of a backend whose answers repeat, one case that turned is a change, once a second look saw it too."""
    text = f'[database]\nurl = "sqlite:///record.db"\n{SUITE}[backends.mine]\n'
    whole, faulty = 'type = "keyword"\n', 'type = "faulty"\nfault = "text-cut"\nof = { type = "keyword" }\n'
    far = case("zebra", writes=[f"{'on and on ' * 7} the zebra key opens door 5"])
    mine.lines([*LINES, far])
    (mine.folder / "memtrend.toml").write_text(text + whole)
    assert [mine.gate()[0] for _ in range(2)] == [3, 0]
    (mine.folder / "memtrend.toml").write_text(text + faulty)
    code, told = mine.gate()
    assert (code, told["failed"], told["lost"], len(told["looks"])) == (1, ["change"], ["case-zebra"], 2)


# What it is held against


def test_a_run_by_its_id(primed):
    """The gate may be held against one run, and only against a whole one of the same suite and backend."""
    assert primed.gate()[1]["baseline"] == [1]
    for named in ("run 2", "2", "run:2"):
        assert primed.gate("--against", named)[1]["baseline"] == [2]
    for named in ("run 99", "yesterday"):
        ran = primed(*GATE, "--against", named)
        assert ran.returncode == 2
        assert "should be baseline" in ran.stderr


def test_green_of_a_branch(mine):
    """green:main is what passed a gate on main: main itself makes the first, no other branch does, and what
    failed or ran elsewhere is not among them."""
    on_main, on_branch = ("--meta", "branch=main"), ("--meta", "branch=idea")
    ran = mine(*GATE, "--against", "green:main", *on_branch)
    assert (ran.returncode, "has passed on main yet" in ran.stderr) == (3, True)
    assert mine.gate("--against", "green:main", *on_main)[0] == 3
    first = mine.gate("--against", "green:main", *on_branch)[1]
    assert (first["passed"], first["baseline"]) == (True, [1])
    assert mine.gate("--against", "green:main", *on_main)[1]["passed"]
    mine.set(lost="r key")
    assert mine.gate("--against", "green:main", *on_main)[0] == 1
    mine.set()
    with closing(opened(mine.folder)) as db:
        assert queries.green_runs(db, "mine", "mine", "main") == [1, 3]
    assert mine.gate("--against", "green:main", *on_main)[1]["baseline"] == [1, 3]


def test_green_is_of_the_commit(mine):
    """Every whole run of a commit that passed counts, by a gate or not; of work that is not committed, only
    what passed itself."""
    who = ("-c", "user.name=noor", "-c", "user.email=noor@localhost")
    for words in (("init", "-qb", "main"), ("add", "mine.jsonl"), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=mine.folder, check=True)
    mine("run", *SERIES)
    mine.gate()
    mine("run", *SERIES)
    with (mine.folder / "mine.jsonl").open("a") as file:
        file.write("\n")
    mine("run", *SERIES)
    with closing(opened(mine.folder)) as db:
        assert queries.green_runs(db, "mine", "mine", "main") == [1, 2, 3]
        assert queries.green_runs(db, "mine", "mine", "idea") == []


def test_the_branch_that_ci_names(mine, monkeypatch):
    """A runner of CI, whose checkout has no branch, says on which it is."""
    monkeypatch.setenv("CI_COMMIT_BRANCH", "main")
    mine.gate()
    with closing(opened(mine.folder)) as db:
        assert queries.run(db, 1).meta == {"branch": "main"}
        assert queries.green_runs(db, "mine", "mine", "main") == [1]


def test_a_file_that_travels(mine, tmp_path, ask):
    """With only the file between two folders, a healthy backend passes and a worse one fails, with what
    changed since; the file holds no question, no memory and no secret."""
    file = mine.folder / "base.json"
    assert mine.gate("--baseline", "base.json")[1]["written"] == "base.json"
    text = file.read_text()
    assert SECRET not in text
    assert HIDDEN in text
    assert not any(word in text for word in ("opens door", "which door", "nobody knows"))
    other = Project(tmp_path / "two", ask)
    code, told = other.gate("--baseline", str(file))
    assert (code, told["baseline"], told["evidence"]) == (
        0,
        [-1],
        "Nothing beyond the noise of the last 5 nights.",
    )
    other.set(lost="r key")
    code, told = other.gate("--baseline", str(file))
    assert (code, told["verdict"], len(told["looks"])) == (1, "worse", 2)
    assert {"name": "lost", "old": "\0", "new": "r key"} in told["suspects"]
    other.set()
    other.lines(LINES[:-1])
    assert other.gate("--baseline", str(file))[1]["missing"] == [f"case-{KEYS[-1]}"]


def test_a_file_that_is_not_right(mine, tmp_path):
    """A file that was changed, is none, or is of another suite is refused by name."""
    mine.gate("--baseline", "base.json")
    file = mine.folder / "base.json"
    good = json.loads(file.read_text())
    for broken, said in (
        (json.dumps({**good, "backend": "other"}), "was changed"),
        ("{}", "no baseline file"),
        ("[1]", "no baseline file"),
        ("night", "no baseline file"),
    ):
        file.write_text(broken)
        ran = mine(*GATE, "--baseline", "base.json")
        assert ran.returncode == 2
        assert said in ran.stderr
        assert "base.json" in ran.stderr


def test_a_file_with_a_right_hash(mine):
    """A file whose hash fits and whose content does not is a mistake of whoever asks: exit 2."""
    content = {"format": portable.FORMAT}
    text = json.dumps({**content, "hash": portable._hash(content)})
    (mine.folder / "base.json").write_text(text)
    ran = mine(*GATE, "--baseline", "base.json")
    assert (ran.returncode, "base.json: this is no baseline file: suite" in ran.stderr) == (2, True)


def test_a_file_that_cannot_be_written(mine):
    """Where no file can be written, that is said before anything is run."""
    ran = mine(*GATE, "--baseline", "nowhere/base.json")
    assert (ran.returncode, "cannot write nowhere/base.json" in ran.stderr) == (2, True)
    with closing(opened(mine.folder)) as db:
        assert queries.count_runs(db) == 0


def test_a_file_of_another_scorer(mine, monkeypatch):
    """Held against a file of another scorer there is no answer, and the file stays as it is; with --renew it
    is written anew, of five trials, and the next gate passes. What fails its bar renews nothing."""
    file = mine.folder / "base.json"
    mine.gate("--baseline", "base.json")
    monkeypatch.setattr(arm, "SCORER_VERSION", "next")
    before = file.read_text()
    assert mine.gate("--baseline", "base.json")[0] == 3
    mine.set(lost=" key", bars="{ pass = 0.9 }")
    code, told = mine.gate("--baseline", "base.json", "--renew")
    assert (code, told["failed"], file.read_text()) == (1, ["ship_bar"], before)
    mine.set()
    ran = mine(*GATE, "--baseline", "base.json", "--renew")
    assert ran.returncode == 3
    assert "another scorer" in ran.stdout
    assert "one was written to base.json" in ran.stdout
    nights = json.loads(file.read_text())["nights"]
    assert {night["system"]["scorer"] for night in nights} == {"next"}
    assert len(nights[-1]["passes"]) == 5
    code, told = mine.gate("--baseline", "base.json", "--renew")
    assert (code, told["written"]) == (0, None)


def test_renewing_without_a_file(mine):
    """There is nothing to renew but a file."""
    ran = mine(*GATE, "--renew")
    assert (ran.returncode, "--baseline" in ran.stderr) == (2, True)


def test_against_and_a_file(mine):
    """Two answers to what it is held against are refused."""
    ran = mine(*GATE, "--against", "green:main", "--baseline", "base.json")
    assert (ran.returncode, "give one of them" in ran.stderr) == (2, True)


# What it writes


def test_junit(primed):
    """JUnit XML has a test case for each case and each check; lost ones fail with their kind, and nothing of
    the memories is in it."""
    primed.set(lost="r key")
    primed(*GATE, "--junit", "gate.xml")
    text = (primed.folder / "gate.xml").read_text()
    checked, asked = ElementTree.fromstring(text)
    assert [one.get("name") for one in checked] == ["change", "critical", "missing"]
    failing = {one.get("name"): one.find("failure") for one in asked if one.find("failure") is not None}
    assert set(failing) == {f"case-{key}" for key in KEYS if key.endswith("r")}
    assert failing[f"case-{KEYS[0]}"].get("type") == "not stored"
    assert failing[f"case-{KEYS[0]}"].get("message").startswith("critical, passed in")
    for suite, failures in ((checked, 2), (asked, len(failing))):
        assert int(suite.get("tests")) == len(suite)
        assert int(suite.get("failures")) == failures
    assert "opens door" not in text


def test_markdown(primed, monkeypatch, tmp_path):
    """The summary goes to its file and, on GitHub, behind what stands in the step's summary already."""
    step = tmp_path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    primed.set(lost="r key")
    assert primed(*GATE, "--md", "gate.md").returncode == 1
    text = (primed.folder / "gate.md").read_text()
    assert step.read_text() == f"before\n{text}"
    assert "failed (change, critical)" in text
    assert f"- `case-{KEYS[0]}` not stored" in text
    assert "`lost`" in text.split("**Suspects**")[1]
    assert "opens door" not in text
