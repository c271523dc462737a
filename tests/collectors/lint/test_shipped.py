"""What we ship, and what `memtrend init` writes, is what we ask of others."""

import pytest

from collectors.lint import check, lint
from collectors.starter import CASES
from collectors.suite import SHIPPED, SuiteConfig


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_suite_has_no_findings(name):
    """No rule finds anything in a suite of ours."""
    assert check(SHIPPED[name]).findings == []


def test_the_first_suite_of_a_project_has_no_findings(tmp_path):
    """The worked cases that a project begins with are in order."""
    (tmp_path / "mine.jsonl").write_text(CASES, encoding="utf-8")
    checked = check(SuiteConfig("mine", tmp_path / "mine.jsonl"))
    assert checked.findings == []
    assert lint(checked.suite) == []
