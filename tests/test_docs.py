"""The documentation tells all there is: checked like code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.main import get_command

from collectors import failures, symptoms
from collectors.backend import BACKENDS
from collectors.backends.faulty import FAULTS
from collectors.cli import app
from collectors.configured import configured
from collectors.lint import RULES
from collectors.suite import SuiteConfig, load
from collectors.suites.golden_format import Case
from store.metrics import METRICS

DOCS = Path(__file__).parents[1] / "docs"
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented(name: str) -> None:
    """A command that exists stands in docs/commands.md, and has a help text."""
    assert f"`memtrend {name}`" in (DOCS / "commands.md").read_text(encoding="utf-8")
    assert COMMANDS[name].help


def _with_groups(commands: dict[str, Any], before: str = "memtrend") -> Iterator[tuple[str, Any]]:
    for name, command in commands.items():
        yield f"{before} {name}", command
        yield from _with_groups(getattr(command, "commands", {}), f"{before} {name}")


@pytest.mark.parametrize(("name", "command"), list(_with_groups(COMMANDS)))
def test_help_shows_every_word(name: str, command: Any) -> None:
    """No word in brackets of a help text is taken for markup and left out."""
    for text in [command.help or "", *(getattr(option, "help", None) or "" for option in command.params)]:
        assert Text.from_markup(text).plain == text.replace("\\[", "["), name


def test_no_command_is_documented_that_does_not_exist() -> None:
    """docs/commands.md names only commands that there are."""
    rows = (DOCS / "commands.md").read_text(encoding="utf-8").splitlines()
    named = {row.split("`memtrend ")[1].split("`")[0] for row in rows if row.startswith("| `memtrend ")}
    assert named == set(COMMANDS)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_metric_is_documented(metric) -> None:
    """A metric stands in docs/glossary.md with the direction that is good."""
    rows = (DOCS / "glossary.md").read_text(encoding="utf-8").splitlines()
    row = next((row for row in rows if row.startswith(f"| `{metric.name}` |")), "")
    assert row.split("|")[3].strip() == metric.better


@pytest.mark.parametrize("kind", sorted({**failures.KINDS, **symptoms.KINDS}))
def test_every_kind_of_failure_is_documented(kind: str) -> None:
    """A kind stands in docs/glossary.md, in the words of the code."""
    meaning = {**failures.KINDS, **symptoms.KINDS}[kind]
    rows = (DOCS / "glossary.md").read_text(encoding="utf-8").splitlines()
    assert any(row.startswith(f"| `{kind}` |") and meaning in row for row in rows)


@pytest.mark.parametrize("field", sorted(Case.model_fields))
def test_every_field_of_a_case_is_documented(field: str) -> None:
    """A field of the golden format stands in the table of docs/suites.md."""
    fields = (DOCS / "suites.md").read_text(encoding="utf-8").split("## Fields")[1].split("## Steps")[0]
    assert f"`{field}`" in fields


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_every_backend_is_documented(backend: str) -> None:
    """A type of backend has a section in docs/backends.md."""
    headings = [
        line for line in (DOCS / "backends.md").read_text(encoding="utf-8").splitlines() if line[:1] == "#"
    ]
    assert any(f"`{backend}`" in heading for heading in headings)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_lint_rule_is_documented(rule) -> None:
    """A rule stands in docs/lint.md with its level, why it matters and what to do, word for word."""
    row = f"| `{rule.name}` | {rule.severity} | {rule.why} | {rule.hint} |"
    assert row in (DOCS / "lint.md").read_text(encoding="utf-8").splitlines()


def test_no_lint_rule_is_documented_that_does_not_exist() -> None:
    """docs/lint.md names only rules that there are, in their order."""
    rows = (DOCS / "lint.md").read_text(encoding="utf-8").split("## Floors")[0].splitlines()
    assert [row.split("`")[1] for row in rows if row.startswith("| `")] == [rule.name for rule in RULES]


def test_every_decision_is_listed() -> None:
    """A decision page that exists can be found from the list."""
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    assert all(page.name in listed for page in (DOCS / "decisions").glob("0*.md"))


@pytest.mark.parametrize("page", [DOCS / "suites.md", DOCS.parent / "README.md"], ids=lambda page: page.name)
def test_the_case_shown_is_one(page: Path, tmp_path: Path) -> None:
    """The case that a page shows loads as a suite of one's own once it stands on one line."""
    shown = re.findall(r"(?s)```json\n(.*?)```", page.read_text(encoding="utf-8"))
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(json.loads(case)) + "\n" for case in shown))
    (probe,) = load(SuiteConfig("mine", tmp_path / "mine.jsonl")).probes
    assert probe.background == "172 memories of world software"


def test_the_readme_counts_every_fault() -> None:
    """The groups of faults in the README are all that there are."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    table = readme.split("| a memory that")[1].split("\n\n")[0]
    rows = [line.split("|")[2:5] for line in table.splitlines()[2:-1]]
    assert [sum(int(row[column]) for row in rows) for column in range(3)] == [len(FAULTS)] * 3


TOML_BLOCKS = re.findall(r"```toml\n(.*?)```", (DOCS / "backends.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", [block for block in TOML_BLOCKS if "[backends." in block])
def test_documented_backends_are_accepted(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every section of a backend in docs/backends.md loads as it stands there."""
    for name in re.findall(r"\$\{env:(\w+)\}", block):
        monkeypatch.setenv(name, "a-value")
    (tmp_path / "memtrend.toml").write_text(block)
    assert configured(tmp_path / "memtrend.toml").backends


OPERATIONS = (DOCS / "operations.md").read_text(encoding="utf-8")
MIXED = """Started memtrend@up.service - memtrend up.
{"timestamp": "2026-01-01T02:30:00Z", "level": "error", "event": "run ended", \
"suite": "golden", "backend": "hybrid", "status": "invalid"}
4711
{"timestamp": "2026-01-01T02:31:00Z", "level": "info", "event": "run began"}
"""
FILTERS = re.findall(r"\|\s+(jq -c?r?R '.*')$", OPERATIONS, re.MULTILINE)


def test_there_are_log_filters() -> None:
    """Logs are filtered by jq for Docker and for the journal."""
    assert len(FILTERS) == 2


@pytest.mark.skipif(not shutil.which("jq"), reason="apt install jq")
@pytest.mark.parametrize("line", FILTERS)
def test_log_filters_pass_over_what_is_no_entry(line: str) -> None:
    """Between the lines of systemd, and whatever else is no entry, the filters find the one that is meant."""
    done = subprocess.run(["sh", "-c", line], input=MIXED, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = done.stdout.splitlines()
    assert {"golden", "hybrid", "invalid"} <= set(re.findall(r"\w+", found))


def test_the_crontab_names_a_copy_by_its_day(tmp_path: Path) -> None:
    """As cron reads the line, where a bare % ends the command, it runs memtrend by its full path with its
    configuration, and names a file of the day."""
    (line,) = re.findall(r"(?s)```crontab\n(.*?)\n```", OPERATIONS)
    *when, user, command = line.split(maxsplit=6)
    as_cron_has_it = re.split(r"(?<!\\)%", command)[0].replace("\\%", "%").removesuffix(" >/dev/null")
    program = tmp_path / "memtrend"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    shown = as_cron_has_it.replace("/opt/memtrend/bin/memtrend", str(program))
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    config, folder, doing, copy = done.stdout.split()
    assert (len(when), user, config, folder, doing) == (
        5, "memtrend", "--config", "/var/lib/memtrend/memtrend.toml", "backup",
    )  # fmt: skip
    assert re.fullmatch(r"/var/backups/memtrend/memtrend-\d{4}-\d\d-\d\d\.db", copy)
