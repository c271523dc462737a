"""Compile requirements.lock from pyproject.toml, or with --check see whether it still fits.

What is locked stays locked as long as pyproject.toml admits it: `make lock` moves nothing by itself,
`make lock ARGS=--upgrade` moves everything to the newest.
"""

import difflib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from install import PYTHON, ROOT, UV, pip_settings, run, stop, uv_settings

LOCK = "requirements.lock"
COMPILE = [
    *[UV, "pip", "compile", "pyproject.toml", "--quiet", "--python", PYTHON, "--python-version", "3.11"],
    *["--all-extras", "--universal", "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links"],
]


def main(arguments):
    os.chdir(ROOT)
    if "--check" not in arguments:
        return compile_into(LOCK, arguments)
    with tempfile.TemporaryDirectory() as folder:
        fresh = shutil.copy(LOCK, folder)
        compile_into(fresh, [])
        compare(Path(LOCK).read_text(), Path(fresh).read_text())


def compile_into(path, arguments):
    """Bring the lock at `path` up to date. Only the main index is asked: mirrors of parts lack hashes."""
    settings = uv_settings(pip_settings())
    for name in ("UV_INDEX", "UV_FIND_LINKS"):
        settings.pop(name, None)
    settings["UV_CUSTOM_COMPILE_COMMAND"] = "make lock"
    run([*COMPILE, *arguments, "--output-file", path], dict(settings, **os.environ))


def compare(locked, fresh):
    if locked != fresh:
        changes = difflib.unified_diff(
            locked.splitlines(), fresh.splitlines(), LOCK, "pyproject.toml", n=0, lineterm=""
        )
        print("\n".join(changes))
        stop("requirements.lock does not fit pyproject.toml", "make lock, and commit it")


if __name__ == "__main__":
    main(sys.argv[1:])
