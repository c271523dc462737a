"""Suspects, of two releases of a real system in environments of their own."""

import json

import pytest

from collectors.suite import SHIPPED_DIR

CONFIG = f"""
[database]
url = "sqlite:///record.db"
[backends.mem]
type = "mem0"
package = "mem0ai==2.2.1"
[suites.part]
path = "{SHIPPED_DIR / "contract"}"
only = ["amend"]
"""


@pytest.mark.backends
def test_the_release_is_suspected_first(tmp_path, ask):
    """Another release of mem0 loses what this one keeps: one alert, whose first suspect is the package,
    before its dependencies and all else, with both versions; `memtrend diff` says the same."""
    series = ("--suite", "part", "--backend", "mem")
    (tmp_path / "memtrend.toml").write_text(CONFIG)
    assert (
        ask(tmp_path, "baseline", "prime", "--suite", "part", "--backend", "mem", "--trials", "3").returncode
        == 0
    )
    (tmp_path / "memtrend.toml").write_text(CONFIG.replace("2.2.1", "1.0.3"))
    assert ask(tmp_path, "run", *series).returncode == 0
    (alert,) = json.loads(ask(tmp_path, "alerts", "list", "--json").stdout)["alerts"]
    assert alert["kind"] in ("critical", "regression")
    assert "contract-amend-keeps-the-rest" in alert["cases"]
    assert alert["suspects"][0] == {"name": "mem0ai", "old": "2.2.1", "new": "1.0.3"}
    assert (alert["first_bad_run"], alert["last_good_run"]) == (2, 1)
    found = json.loads(ask(tmp_path, "diff", "--json").stdout)
    assert found["suspects"][0]["name"] == "mem0ai"
