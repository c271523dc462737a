"""A control as it is configured: the same backend, another release, an environment and a store of its own."""

from contextlib import closing
from dataclasses import replace

import pytest

from collectors.backend import Isolation
from collectors.configured import backend_config, configured, control_config
from store import queries
from store.settings import SettingsError
from tests.collectors.playground import CONFIG, LINES, cases, memtrend, one_document, opened, project

PINNED = """
[database]
url = "sqlite:///record.db"
[backends.mine]
type = "keyword"
package = "thing==2.0"
control = "thing==1.0"
directory = "stores/mine"
with = ["other==1.0"]
python = "3.12"
[environments]
directory = "kept"
[suites.small]
path = "small.jsonl"
"""


def test_configured(tmp_path, monkeypatch):
    """A control is the same backend with the package replaced, under a name and in a folder of its own."""
    project(tmp_path, PINNED, LINES)
    of = configured(tmp_path / "memtrend.toml")
    control = control_config(of, "mine")
    assert (control.name, control.type, control.isolation.package) == (
        "mine-control",
        "keyword",
        "thing==1.0",
    )
    assert control.directory == tmp_path / "stores" / "mine-control"
    home = tmp_path / "kept"
    assert control.isolation == Isolation("thing==1.0", ("other==1.0",), "3.12", home)
    assert control_config(configured(tmp_path / "memtrend.toml"), "mine").isolation.package == "thing==1.0"
    assert replace(control, name="mine", isolation=None, directory=None) == replace(
        backend_config(of, "mine"), isolation=None, directory=None
    )


def test_a_taken_name_is_refused(tmp_path):
    """No other backend may have the name of a control."""
    project(tmp_path, f'{PINNED}[backends.mine-control]\ntype = "dense"\n', LINES)
    with pytest.raises(
        SettingsError, match=r"backends.mine.control: the control is called mine-control, and"
    ):
        configured(tmp_path / "memtrend.toml")


@pytest.mark.parametrize("directory", ["stores/mine-control", "stores/../stores/mine-control"])
def test_a_taken_directory_is_refused(tmp_path, directory):
    """No other backend may keep its store where the control keeps its own."""
    project(tmp_path, f'{PINNED}[backends.other]\ntype = "dense"\ndirectory = "{directory}"\n', LINES)
    said = r"backends.mine.control: the control keeps its store in .*mine-control, and so does backend other"
    with pytest.raises(SettingsError, match=said):
        configured(tmp_path / "memtrend.toml")


SHARING = """
[backends.mine]
type = "{type}"
package = "thing==2.0"
{control}
{store}
[suites.small]
path = "small.jsonl"
"""
FROZEN = 'control = "thing==1.0"'


@pytest.mark.parametrize(
    ("type", "store", "key"),
    [
        ("mem0", 'config = { vector_store = { provider = "qdrant" } }', "config.vector_store"),
        ("mem0", 'config = { graph_store = { provider = "kuzu" } }', "config.graph_store"),
        ("mem0", 'config = { history_db_path = "h.db" }', "config.history_db_path"),
        ("langgraph", 'store = "postgres"\nurl = "postgresql://localhost/m"', "url"),
        ("chroma", 'config = { host = "localhost" }', "config"),
        ("qdrant", 'config = { url = "http://localhost:6333" }', "config"),
    ],
)
def test_a_store_of_the_teams_own_is_refused(tmp_path, type, store, key):
    """Where the configuration names the store both releases would share it: that is said at load, with what
    to do. Without a control the same section loads."""
    project(tmp_path, SHARING.format(type=type, store=store, control=FROZEN), LINES)
    said = (
        f"backends.mine.control: both releases would share the store that {key} names; leave it to memtrend, "
        "or run without control"
    )
    with pytest.raises(SettingsError, match=said):
        configured(tmp_path / "memtrend.toml")
    project(tmp_path, SHARING.format(type=type, store=store, control=""), LINES)
    assert configured(tmp_path / "memtrend.toml")


@pytest.mark.parametrize(
    ("type", "store"),
    [
        ("mem0", 'config = { llm = { provider = "openai" } }'),
        ("langgraph", 'store = "sqlite"'),
        ("chroma", 'space = "cosine"\nconfig = {}'),
        ("ours:Ours", 'url = "http://localhost"'),
    ],
)
def test_a_store_of_memtrends_has_a_control(tmp_path, type, store):
    """What names no store is given two, and what a class of the team's own makes of its options is its own
    affair."""
    project(tmp_path, SHARING.format(type=type, store=store, control=FROZEN), LINES)
    assert control_config(configured(tmp_path / "memtrend.toml"), "mine")


def test_without_one(tmp_path):
    """A backend without a control has none."""
    project(tmp_path, CONFIG, LINES)
    assert control_config(configured(tmp_path / "memtrend.toml"), "shelf") is None


# Two releases for real


TWO = '''
import six

class Box:
    """Keeps what it is told; since 1.17 it forgets what is about basil."""

    capabilities = frozenset()

    def __init__(self):
        self.held = {}

    def reset(self, scope):
        self.held[scope.namespace] = {}

    def remember(self, scope, memories):
        kept = [one for one in memories if six.__version__ < "1.17" or "basil key opens" not in one.text]
        self.held[scope.namespace] |= {one.id: one.text for one in kept}

    def recall(self, scope, query, k):
        words = set(query.lower().split())
        held = self.held[scope.namespace].items()
        best = sorted(held, key=lambda pair: -len(words & set(pair[1].split())))
        return [text for _, text in best[:k]]

    def versions(self):
        return {"six": six.__version__}
'''
RELEASES = """
[database]
url = "sqlite:///record.db"
[backends.new]
type = "two:Box"
package = "six==1.17.0"
control = "six==1.16.0"
[suites.small]
path = "small.jsonl"
"""


def test_environments_of_both(tmp_path):
    """`backend envs --make` makes the control's environment too, and the doctor opens the adapter in it: what
    cannot be made is said of the control."""
    home = f'[environments]\ndirectory = "{tmp_path}/envs"\n'
    project(tmp_path, RELEASES + home, cases(4))
    (tmp_path / "two.py").write_text(TWO)
    made = one_document(memtrend(tmp_path, "backend", "envs", "--make", "--json"))["environments"]
    assert sorted(one["package"] for one in made) == ["six==1.16.0", "six==1.17.0"]
    fine = memtrend(tmp_path, "doctor", "new")
    assert "backend new-control" in fine.stdout, fine.stdout + fine.stderr
    assert "adapter checks, the control of new" in fine.stdout
    broken = RELEASES.replace('control = "six==1.16.0"', 'control = "six==99.0"')
    (tmp_path / "memtrend.toml").write_text(broken + home)
    for asked in (["doctor"], ["doctor", "new"]):
        told = memtrend(tmp_path, *asked)
        assert told.returncode == 1
        assert "cannot make an environment for six==99.0" in " ".join(told.stdout.split())


def test_two_releases(tmp_path):
    """Each release runs in an environment of its own, from one section of the configuration: what the newer
    one loses the frozen one keeps, and the verdict counts it."""
    project(tmp_path, RELEASES, cases(4))
    (tmp_path / "two.py").write_text(TWO)
    ran = memtrend(tmp_path, "run", "--suite", "small", "--json")
    (document,) = one_document(ran)["runs"]
    assert (ran.returncode, document["status"]) == (0, "whole"), ran.stderr
    with closing(opened(tmp_path)) as record:
        rows = queries.runs(record)
        told = [queries.environment(record, row.environment_id) for row in rows]
        said = queries.verdict(record, document["id"]).content["control"]
    assert [(row.backend, row.metrics["pass"].mean) for row in rows] == [("new-control", 1.0), ("new", 0.75)]
    assert [one["backend"]["six"] for one in told] == ["1.16.0", "1.17.0"]
    assert [one["config"]["package"] for one in told] == ["six==1.16.0", "six==1.17.0"]
    assert (said["release"], said["lost"], said["gained"]) == ("six==1.16.0", 1, 0)
