"""A control as it is configured: the same backend, another release, an environment and a store of its own."""

from contextlib import closing
from dataclasses import replace

import pytest

from collectors.configured import configured, control_config
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
    assert control.isolation == replace(control.isolation, package="thing==1.0")


def test_a_taken_name_is_refused(tmp_path):
    """No other backend may have the name of a control."""
    project(tmp_path, f'{PINNED}[backends.mine-control]\ntype = "dense"\n', LINES)
    with pytest.raises(
        SettingsError, match=r"backends.mine.control: the control is called mine-control, and"
    ):
        configured(tmp_path / "memtrend.toml")


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
