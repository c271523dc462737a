"""What is wrong with a suite, before it costs a run. Pure over the suite; only `check` reads files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from collectors.lint.findings import Finding
from collectors.lint.rules import BY_NAME, RULES
from collectors.lint.view import View
from collectors.suite import Problem, Suite, SuiteConfig, SuiteError, load
from store.hiding import redacted

__all__ = ["RULES", "Checked", "Finding", "check", "lint"]


class Checked(NamedTuple):
    """`suite` is None where it cannot be loaded; then the findings are of what could be read of it."""

    suite: Suite | None
    findings: list[Finding]


def lint(suite: Suite) -> list[Finding]:
    """What the rules find, by file and line."""
    view = View(suite)
    checks = [(rule, rule.check) for rule in RULES if rule.check]
    found = [rule.of_probe(one.case.probe, one.message) for rule, check in checks for one in check(view)]
    placed = [finding if finding.file else finding._replace(file=suite.path) for finding in found]
    return _told(placed)


def _told(findings: Iterable[Finding]) -> list[Finding]:
    """By file and line, and without the secrets that a case may hold: findings are shown, kept and sent."""
    shown = (one._replace(case=redacted(one.case), message=redacted(one.message)) for one in findings)
    return sorted(shown, key=lambda finding: (finding.file, finding.line))


def check(config: SuiteConfig) -> Checked:
    """Load and lint. What keeps the suite from being loaded is told as findings too."""
    try:
        suite = load(config)
    except SuiteError as error:
        problems = error.problems or [Problem(str(config.path), str(error))]
        rest = Suite(config.name, config.kind, error.rest, config.origin, str(config.path))
        findings = [BY_NAME[problem.rule].of_problem(problem) for problem in problems] + lint(rest)
        return Checked(None, _told(findings))
    return Checked(suite, lint(suite))
