"""What changed between two runs, through the command line: runs out of two real virtual environments."""

import site
import subprocess
import venv
from contextlib import closing
from pathlib import Path

import pytest

from store import writes
from tests.collectors.playground import LINES, one_document, opened, project, with_odd, write_suite

ROOT = Path(__file__).parents[2]
CONFIG = """
[database]
url = "sqlite:///record.db"
[backends.pocket]
type = "pocketmem:Memory"
prompt = "{prompt}"
api_key = "{key}"
[suites.small]
path = "small.jsonl"
"""
MEMORY = """
from tests.collectors.odd_backends import Shelf

class Memory(Shelf):
    def __init__(self, prompt, api_key):
        super().__init__()

    def versions(self):
        return {{"pocketmem": "{version}", "llm": "{llm}", "server": "https://me:hunter22@{llm}.example"}}
"""


def install(environment, name, version, source="", requires=()):
    """What an installer leaves of a wheel: the module, and what is told of it."""
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / f"{name}.py").write_text(source)
    about = packages / f"{name}-{version}.dist-info"
    about.mkdir()
    required = "".join(f"Requires-Dist: {other}\n" for other in requires)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}")
    (about / "RECORD").write_text(f"{name}.py,,\n{about.name}/METADATA,,\n{about.name}/RECORD,,\n")


def environment(folder, version, llm, others):
    """A virtual environment with this version of the memory. What memtrend itself needs stands behind it."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    lines = [*(f"import site; site.addsitedir({path!r})" for path in site.getsitepackages()), str(ROOT)]
    (packages / "memtrend_of_the_tests.pth").write_text("\n".join(lines) + "\n")
    source = MEMORY.format(version=version, llm=llm)
    install(folder, "pocketmem", version, source, ["pocket_index>=1", "unrelated; extra == 'more'"])
    for name, number in others.items():
        install(folder, name, number)
    return folder


def run(environment, folder, **config):
    """`memtrend run` of that environment."""
    project(folder, CONFIG.format(**config), LINES)
    command = [environment / "bin" / "python", "-m", "collectors.cli", "run", "--suite", "small", "--json"]
    command += ["--backend", "pocket", "--meta", f"image=sha256:{config['prompt'].encode().hex()}"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return one_document(ran)["runs"][0]["id"]


def commit(folder, text):
    """The revision of a commit in the folder."""
    (folder / "agent.py").write_text(text)
    for command in ("init -q", "add agent.py", "commit -qm agent"):
        named = ["-c", "user.name=Noor", "-c", "user.email=noor@example.org"]
        subprocess.run(["git", *named, *command.split()], cwd=folder, check=True)
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    )
    return told.stdout.strip()


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """A folder with runs out of two environments, whose revisions are told as well: all that moved between
    them is known."""
    home = tmp_path_factory.mktemp("moved")
    folder = home / "project"
    folder.mkdir()
    old = environment(
        home / "old", "1.0.5", "gpt-4o", {"pocket_index": "3.1", "unrelated": "7", "zebra": "2.0"}
    )
    new = environment(
        home / "new", "1.0.6", "gpt-5", {"pocket_index": "3.2", "unrelated": "8", "apple": "0.1"}
    )
    first = commit(folder, "as it was")
    run(old, folder, prompt="Be kind.", key="sk-7f3a-very-secret")
    with closing(opened(folder)) as db:
        writes.add_mark(db, "agent 4.12")
    second = commit(folder, "as it is")
    run(new, folder, prompt="Be brief.", key="sk-9b1c-very-secret")
    return folder, first, second


@pytest.fixture
def told(moved, ask):
    ran = ask(moved[0], "diff", "1", "2", "--json")
    assert ran.returncode == 0, ran.stderr
    return one_document(ran)


def values(rows):
    return [(row["name"], row["old"], row["new"]) for row in rows]


def test_packages(told):
    """Packages that came, went and moved between two environments are named with their versions, and no
    other package is."""
    assert values(told["packages"]["added"]) == [("apple", None, "0.1")]
    assert values(told["packages"]["removed"]) == [("zebra", "2.0", None)]
    assert values(told["packages"]["moved"]) == [
        ("pocket-index", "3.1", "3.2"),
        ("pocketmem", "1.0.5", "1.0.6"),
        ("unrelated", "7", "8"),
    ]


def test_the_rest(moved, told):
    """Models, prompts, server, container and git range are told, each once; what did not move is not."""
    _, first, second = moved
    assert values(told["models"]) == [("llm", "gpt-4o", "gpt-5")]
    assert values(told["prompts"]) == [("prompt", "Be kind.", "Be brief.")]
    (server,) = told["server"]
    assert server["new"].endswith("gpt-5.example")
    assert [row["path"] for row in told["container"]] == ["meta.image"]
    assert told["git"] == {"old": first, "new": second, "range": f"{first[:8]}..{second[:8]}"}
    assert [mark["text"] for mark in told["marks"]] == ["agent 4.12"]
    unmoved = ("backend", "embedder", "judge", "suite", "scorer", "configuration", "system", "meta")
    assert {name: told[name] for name in unmoved} == {name: [] for name in unmoved}


def test_suspects(told):
    """The memory's own package is suspected first, then its server and container, what it requires, the
    model and the prompt; what it does not require comes after the code around it."""
    assert [suspect["name"] for suspect in told["suspects"]] == [
        *("pocketmem", "server", "image", "pocket-index", "llm", "prompt"),
        *("git", "apple", "unrelated", "zebra"),
    ]
    assert told["suspects"][0] == {
        "name": "pocketmem",
        "path": "packages.pocketmem",
        "kind": "packages",
        "old": "1.0.5",
        "new": "1.0.6",
        "moved_before": False,
    }


def test_no_secret(moved, told):
    """A secret is in no environment, so a key that was replaced is no change."""
    assert told["configuration"] == []
    kept = b"".join(file.read_bytes() for file in moved[0].glob("record.db*"))
    assert b"Be brief." in kept
    assert not [secret for secret in (b"7f3a", b"9b1c", b"hunter22") if secret in kept]


def test_for_people(moved, ask):
    """The runs, the first suspects in a sentence, each change with its kind, and the marks."""
    said = ask(moved[0], "diff", "1", "2").stdout.splitlines()
    assert said[0].startswith("run 1 (small on pocket, ")
    assert said[1].startswith("pocketmem 1.0.5 → 1.0.6, server https://")
    assert said[2] == "  1. packages: pocketmem 1.0.5 → 1.0.6"
    assert "  6. prompts: prompt Be kind. → Be brief." in said
    assert said[-4].endswith(": agent 4.12")
    assert said[-3:] == ["pass rate: 100.0 % → 100.0 %", "lost 0", "gained 0"]


def test_what_the_runs_came_to(tmp_path, ask):
    """`diff` of two runs of a suite ends with both pass rates and the cases that turned; that of two suites
    says so, and compares no case."""
    project(tmp_path, with_odd("frail", "Shelf", 'lost = "basil key"'), LINES)
    config = (
        (tmp_path / "memtrend.toml")
        .read_text()
        .replace("[suites.small]", '[suites.few]\npath = "few.jsonl"\n[suites.small]')
    )
    (tmp_path / "memtrend.toml").write_text(config)
    write_suite(tmp_path / "few.jsonl", LINES[:1])
    for suite, backend in (("small", "bare"), ("small", "frail"), ("few", "frail")):
        ask(tmp_path, "run", "--suite", suite, "--backend", backend)
    told = ask(tmp_path, "diff", "1", "2").stdout.splitlines()
    assert told[-3:] == ["pass rate: 100.0 % → 80.0 %", "lost 1: case-basil", "gained 0"]
    found = one_document(ask(tmp_path, "diff", "2", "1", "--json"))
    assert (found["pass"], found["lost"], found["gained"]) == ([0.8, 1.0], [], ["case-basil"])
    two = ask(tmp_path, "diff", "2", "3").stdout
    assert "These are runs of two suites, small and few: no case is compared" in two
    assert "suite:" not in two
    found = one_document(ask(tmp_path, "diff", "2", "3", "--json"))
    assert (found["pass"], found["lost"], found["gained"]) == ([0.8, 1.0], None, None)


def test_no_such_run(moved, ask):
    """A run that there is not is exit code 3."""
    ran = ask(moved[0], "diff", "1", "99")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == "memtrend: no run 99; memtrend runs lists them\n"


def test_nothing_to_tell(tmp_path, ask):
    """Two runs of one environment differ in nothing, and that is said. A run whose backend could not be
    opened has nothing to compare: exit code 3, and the reason."""
    project(tmp_path, with_odd("broken", "Broken"), LINES)
    for backend in ("shelf", "shelf", "broken"):
        ask(tmp_path, "run", "--suite", "small", "--backend", backend)
    same, broken = ask(tmp_path, "diff", "1", "2"), ask(tmp_path, "diff", "1", "3")
    assert same.returncode == 0
    assert same.stdout.splitlines()[1:] == [
        "Nothing that is recorded changed",
        "pass rate: 80.0 % → 80.0 %",
        "lost 0",
        "gained 0",
    ]
    assert (broken.returncode, broken.stdout) == (3, "")
    assert broken.stderr == "memtrend: run 3 is void: what it ran on is not recorded\n"
