"""The arrows between the packages: dashboard -> store <- collectors."""

import json
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from importlinter import cli

ROOT = Path(__file__).parent.parent
LIGHT = ("numpy", "scipy")
HEAVY = {
    *(
        "alembic",
        "apscheduler",
        "httpx",
        "mem0",
        "numpy",
        "onnxruntime",
        "openai",
        "pandas",
        "plotly",
        "pydantic",
    ),
    *("qdrant_client", "requests", "rich", "scipy", "sqlalchemy", "sqlmodel", "stamina", "streamlit"),
    *("tokenizers", "typer", "wordllama"),
}


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(
        "store", "collectors", "dashboard", include_external_packages=True, cache_dir=None
    )


def test_contracts(capsys):
    """Every contract of pyproject.toml is kept, with indirect imports counted."""
    code = cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert code == cli.EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_statistics_are_pure(graph):
    """store.stats imports nothing of ours but itself, and of others numpy and scipy alone."""
    statistics = {module for module in graph.modules if f"{module}.".startswith("store.stats.")}
    assert statistics
    imported = set().union(*map(graph.find_modules_directly_imported_by, statistics)) - statistics
    assert {module for module in imported if module not in sys.stdlib_module_names} <= set(LIGHT)


def test_nothing_builds_on_the_command_line(graph):
    """The one file that may import all three packages is imported by none of them."""
    assert graph.find_modules_that_directly_import("collectors.cli") <= {"collectors.__main__"}


def test_the_words_are_light():
    """Importing collectors.suite and collectors.backend loads no SDK, no statistics, no database, no web."""
    program = (
        "import json, sys\n"
        "import collectors.suite, collectors.backend\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(json.loads(printed))
    assert loaded & HEAVY == set()
    assert loaded & {"store", "dashboard"} == set()


def test_the_collectors_packages_are_empty():
    """The packages of a worker hold nothing themselves: it runs where nothing of memtrend is installed."""
    for package in ("collectors", "collectors/backends", "collectors/suites"):
        assert (ROOT / package / "__init__.py").read_bytes() == b"", package
