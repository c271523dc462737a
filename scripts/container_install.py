"""Install a copy of memtrend: `python3 scripts/container_install.py FOLDER dependencies|memtrend`.

For the image and for servers. What it takes comes from the lock with its hashes, as scripts/install.py does
it, but nothing in FOLDER leads back to this checkout, and nothing for tests or development is in it. First
the dependencies, which change seldom and so are a layer of their own, then memtrend itself.
"""

import os
import sys
from pathlib import Path

from install import ROOT, create, install_uv, pip_settings, run, stop, uv_settings

EXTRAS = ("container", "isolated", "postgres")
LOCKED = ("-c", "requirements.lock", "-b", "requirements.lock")
STEPS = {
    "dependencies": ("-r", "pyproject.toml", *(word for extra in EXTRAS for word in ("--extra", extra))),
    "memtrend": ("--no-deps", "."),
}


def main(arguments):
    if len(arguments) != 2 or arguments[1] not in STEPS:
        stop("two arguments are needed", "name a folder, and one of " + ", ".join(STEPS))
    venv = Path(arguments[0]).absolute()
    os.chdir(ROOT)
    python, uv = (str(venv / "bin" / name) for name in ("python", "uv"))
    if not Path(uv).exists():
        create(str(venv))
        install_uv(python)
    # Compiled now: who runs it may not write there, and each process would compile it all again.
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *LOCKED]
    run([*install, *STEPS[arguments[1]]], dict(uv_settings(pip_settings(python)), **os.environ))


if __name__ == "__main__":
    main(sys.argv[1:])
