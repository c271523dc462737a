"""Make .venv from the lock: `python3 scripts/install.py [--browser] [EXTRA ...]`.

pip brings nothing but uv, at the version and hashes that requirements.lock names; uv does the rest, from the
registries that pip is set up for. The extras add up: an environment that once held mem0 keeps it, at the
version of the newest lock. A record in .venv of what was installed makes a call that has nothing to do cheap.
An environment that works is kept, whatever Python this is; `make clean` first to change it. --browser also
sees to Debian's Chromium.
Runs on any Python 3, to be able to say which one is needed.
"""

import fcntl
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
RECORD = os.path.join(VENV, "memtrend-installed.json")
PYTHON = os.path.join(VENV, "bin", "python")
UV = os.path.join(VENV, "bin", "uv")


def main(arguments):
    if sys.version_info < (3, 11):
        stop(
            "Python %d.%d is too old: memtrend needs 3.11 or newer" % sys.version_info[:2],
            "install one (python3 of Debian 12 or newer will do), then: make install PYTHON=/path/to/python3",
        )
    os.chdir(ROOT)
    with open("requirements.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would write over each other
        if "--browser" in arguments and not shutil.which("chromium"):
            apt_install("chromium", "the browser needs Chromium")
        ensure({argument for argument in arguments if argument != "--browser"})


def ensure(extras):
    """Install unless the record says that .venv holds just that already."""
    known = known_extras()
    if not extras <= known:
        unknown = ", ".join(sorted(extras - known))
        stop("there is no extra " + unknown, "choose among " + ", ".join(sorted(known)))
    before = recorded()
    wanted = {"inputs": fingerprint(), "extras": sorted(extras.union(before.get("extras", [])) & known)}
    if wanted != before:
        install(wanted)


def known_extras():
    import tomllib  # not on top: the Pythons that are told to go have none

    with open("pyproject.toml", "rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"])


def recorded():
    """What .venv holds, or nothing where it is missing or its Python is gone."""
    if not (os.path.exists(PYTHON) and os.path.exists(RECORD)):
        return {}
    with open(RECORD) as file:
        return json.load(file)


def fingerprint():
    """What decides the content of .venv; the place too, since its scripts name it."""
    digest = hashlib.sha256(ROOT.encode())
    for name in ("pyproject.toml", "requirements.lock"):
        with open(name, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def install(wanted):
    """Bring .venv to `wanted`. The record goes first, so that an interrupted call is done again."""
    extras = "[" + ",".join(wanted["extras"]) + "]" if wanted["extras"] else ""
    print("installing memtrend%s into .venv" % extras, flush=True)
    if os.path.exists(RECORD):
        os.remove(RECORD)
    if not works():
        create()
    environment = dict(uv_settings(pip_settings()), **os.environ)
    bootstrap_uv()
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    locked = ["-c", "requirements.lock", "-b", "requirements.lock"]
    run([UV, "pip", "install", "--python", PYTHON, *quiet, *locked, "-e", "." + extras], environment)
    with open(RECORD, "w") as file:
        json.dump(wanted, file)


def works():
    """Whether .venv has a Python that is new enough, and scripts that name it: they do not after a move."""
    try:
        with open(os.path.join(VENV, "bin", "pip")) as file:
            at_home = PYTHON in file.read()
        return (
            at_home
            and subprocess.call([PYTHON, "-c", "import pip, sys; sys.exit(sys.version_info < (3, 11))"]) == 0
        )
    except OSError:  # no such file, or none that runs: its Python is gone
        return False


def create(venv=VENV):
    try:
        import ensurepip  # noqa: F401  Debian keeps it, and so the making of environments, in a package of its own
    except ImportError:
        apt_install("python3-venv", "this Python cannot make environments")
    run([os.path.realpath(getattr(sys, "_base_executable", sys.executable)), "-m", "venv", "--clear", venv])


def apt_install(package, problem):
    """Install a Debian package where that is ours to do, else name it."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        stop(problem, "as root: apt install %s, then the same command again" % package)
    print("%s: installing %s" % (problem, package), flush=True)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run(["apt-get", "update", "-qq"], environment)
    run(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package],
        environment,
        subprocess.DEVNULL,
    )


def bootstrap_uv():
    """Let pip install uv as the lock pins it, unless it is there already."""
    version = locked_requirement("uv").split()[0].split("==")[1]
    if os.path.exists(UV) and subprocess.check_output([UV, "--version"]).split()[1].decode() == version:
        return
    install_uv(PYTHON)


def install_uv(python):
    """The one thing that pip brings."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(locked_requirement("uv"))
        file.flush()
        pip = [python, "-m", "pip", "--disable-pip-version-check", "-qq"]
        run([*pip, "install", "--no-deps", "--require-hashes", "-r", file.name])


def locked_requirement(name):
    """The lines of one package in the lock: its version and, continued, its hashes."""
    with open("requirements.lock") as file:
        entries = file.read().replace("\\\n", "").splitlines()
    return next(entry for entry in entries if entry.startswith(name + "=="))


def pip_settings(python=PYTHON):
    """pip's own settings by name, from its files and the environment; the nearest to the command wins."""
    listed = subprocess.check_output([python, "-m", "pip", "config", "list"], universal_newlines=True)
    settings = {}
    for section in ("global.", "install.", ":env:."):
        for line in listed.splitlines():
            if line.startswith(section):
                name, _, value = line[len(section) :].partition("=")
                settings[name] = value.strip("'\"").replace("\\n", " ")
    return settings


def uv_settings(pip):
    """The same settings in uv's names. pip passes over a folder that does not exist, uv would stop there."""
    pairs = {
        "UV_DEFAULT_INDEX": pip.get("index-url"),
        "UV_INDEX": " ".join(existing(pip.get("extra-index-url", ""))),
        "UV_FIND_LINKS": ",".join(existing(pip.get("find-links", ""))),
        "UV_NO_INDEX": pip.get("no-index"),
        "UV_INSECURE_HOST": pip.get("trusted-host"),
        "UV_HTTP_TIMEOUT": pip.get("timeout", pip.get("default-timeout")),
        "SSL_CERT_FILE": pip.get("cert"),
        "SSL_CLIENT_CERT": pip.get("client-cert"),
        "ALL_PROXY": pip.get("proxy"),
    }
    settings = {name: value for name, value in pairs.items() if value}
    settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip: all indexes alike; the hashes make it safe
    settings["UV_PYTHON_DOWNLOADS"] = "never"
    if system_certificates():
        settings["UV_SYSTEM_CERTS"] = "true"  # as pip; uv's own list knows no company's certificate
    return settings


def system_certificates():
    """Whether this machine has a list of certificates; a bare container has none."""
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and os.listdir(paths.capath)))


def existing(places):
    """Addresses, and of the folders on this machine those that are there."""
    for place in places.split():
        path = place[len("file://") :] if place.startswith("file://") else place
        if "://" in path or os.path.isdir(path):
            yield place


def run(command, environment=None, stdout=None):
    code = subprocess.call(command, env=environment, stdout=stdout)
    if code != 0:
        stop("this failed with exit code %d: %s" % (code, " ".join(command)), "see its message above")


def stop(problem, remedy):
    sys.exit("make install: %s: %s" % (problem, remedy))


if __name__ == "__main__":
    main(sys.argv[1:])
