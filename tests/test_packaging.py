"""What is installed: the lock, the wheel, the settings handed on to uv, and the look that Streamlit reads."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from streamlit import config

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCK = (ROOT / "requirements.lock").read_text()
LOOK = ROOT / "dashboard" / "streamlit.toml"


@pytest.fixture
def install(monkeypatch):
    """scripts/install.py as a module, in a fresh state."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "scripts" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(ROOT)
    return module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names in a wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


def locked():
    """Requirement -> its hashes, for each entry of the lock."""
    entries = re.sub(r"\\\n", "", LOCK).splitlines()
    for entry in entries:
        if entry and not entry.lstrip().startswith("#"):
            requirement, *hashes = entry.split("--hash=")
            yield Requirement(requirement.strip()), hashes


def test_lock_has_hashes():
    """Every package of the lock is pinned to one version and carries sha256 hashes."""
    entries = list(locked())
    assert len(entries) > 50
    for requirement, hashes in entries:
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64} *", value) for value in hashes), requirement


def test_lock_names_no_place():
    """The lock names no registry, no folder and no address."""
    assert "://" not in LOCK
    assert "--index" not in LOCK
    assert "--find-links" not in LOCK


def test_lock_brings_no_torch():
    """No extra brings torch or a vendor's accelerator libraries, which cost gigabytes."""
    names = {canonicalize_name(requirement.name) for requirement, _ in locked()}
    assert not [name for name in names if name.startswith(("torch", "nvidia", "triton", "cuda"))]


def test_lock_serves_what_is_asked_for():
    """Each dependency and each extra of pyproject.toml, and what builds the package, is in the lock."""
    asked = map(Requirement, chain(PROJECT["dependencies"], *EXTRAS.values()))
    versions = {}
    for requirement, _ in locked():
        (specifier,) = requirement.specifier
        versions.setdefault(canonicalize_name(requirement.name), []).append(specifier.version)
    for requirement in asked:
        found = versions.get(canonicalize_name(requirement.name), [])
        assert any(requirement.specifier.contains(version) for version in found), requirement
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(build) <= set(EXTRAS["build"])


def test_wheel_holds_every_file(wheel):
    """A wheel holds each file of the three packages: suites, migrations and the look as well as code."""
    present = {
        str(path.relative_to(ROOT))
        for package in ("store", "collectors", "dashboard")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "dashboard/streamlit.toml" in present
    assert present <= wheel


def test_wheel_holds_nothing_else(wheel):
    """A wheel brings its packages and its metadata, and no tests or scripts under other top names."""
    tops = {name.partition("/")[0] for name in wheel}
    assert tops == {"store", "collectors", "dashboard", f"memtrend-{PROJECT['version']}.dist-info"}


def documents():
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "Makefile"]


def sources():
    return [
        path for package in ("store", "collectors", "dashboard") for path in (ROOT / package).rglob("*.py")
    ]


def test_extras_named_anywhere_exist():
    """Every `EXTRAS=...` in documents, Makefile and messages names extras that exist."""
    for path in [*documents(), *sources()]:
        for quoted, plain in re.findall(r'EXTRAS=(?:\\?"([\w ]*)\\?"|([\w]+))', path.read_text()):
            assert set((quoted or plain).split()) <= set(EXTRAS), path


def test_targets_named_in_documents_exist():
    """Every `make TARGET` at the start of a line or of a code span in the documents is a target."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in ROOT.glob("*.md"):
        named = set(re.findall(r"(?:^|`|&& )make ([a-z]+)", path.read_text(), re.MULTILINE))
        assert named <= targets, path


def look():
    """Streamlit's settings as it names them: dotted key -> value."""

    def flat(table, prefix=""):
        for key, value in table.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield prefix + key, value

    return dict(flat(tomllib.loads(LOOK.read_text())))


def test_look_has_only_known_settings():
    """Every key of the look is an option of the Streamlit that is installed, which would pass over others."""
    unknown = set(look()) - set(config.get_config_options())
    assert unknown == set()


def test_look_stays_on_this_machine():
    """The look fetches no font from elsewhere, sends no statistics and listens on loopback."""
    settings = look()
    assert "://" not in LOOK.read_text()
    assert settings["browser.gatherUsageStats"] is False
    assert settings["server.address"] == "127.0.0.1"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_look_has_ten_chart_colours(mode):
    """Each mode has at least ten different chart colours: with fewer, plotly's own are drawn instead."""
    colours = look()[f"theme.{mode}.chartCategoricalColors"]
    assert len(set(colours)) == len(colours) >= 10


def test_look_is_the_same_in_a_checkout():
    """.streamlit/config.toml, which Streamlit reads in a checkout, is the file that a wheel carries."""
    assert (ROOT / ".streamlit" / "config.toml").samefile(LOOK)


def test_pip_settings_reach_uv(install, tmp_path, monkeypatch):
    """pip's index, mirrors, folders, hosts, proxy and certificates reach uv under its names."""
    monkeypatch.setattr(install, "system_certificates", lambda: True)
    assert install.uv_settings(
        {
            "index-url": "https://main.example/simple",
            "extra-index-url": f"https://more.example/simple file://{tmp_path}",
            "find-links": f"{tmp_path} https://links.example/",
            "trusted-host": "main.example",
            "default-timeout": "90",
            "cert": "/certificates.pem",
            "proxy": "http://proxy.example:3128",
        }
    ) == {
        "UV_DEFAULT_INDEX": "https://main.example/simple",
        "UV_INDEX": f"https://more.example/simple file://{tmp_path}",
        "UV_FIND_LINKS": f"{tmp_path},https://links.example/",
        "UV_INSECURE_HOST": "main.example",
        "UV_HTTP_TIMEOUT": "90",
        "SSL_CERT_FILE": "/certificates.pem",
        "ALL_PROXY": "http://proxy.example:3128",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_SYSTEM_CERTS": "true",
    }


def test_folders_that_are_gone_are_passed_over(install, tmp_path):
    """A find-links folder that does not exist, which pip passes over and uv stops at, is not handed on."""
    assert "UV_FIND_LINKS" not in install.uv_settings({"find-links": str(tmp_path / "gone")})


def test_pip_settings_are_read_as_pip_ranks_them(install, monkeypatch):
    """The environment beats a command's section, which beats the global one; several values stay several."""
    listed = (
        "global.index-url='https://global.example'\n"
        "global.extra-index-url='https://a.example\\nhttps://b.example'\n"
        "install.index-url='https://install.example'\n"
        ":env:.index-url='https://environment.example'\n"
    )
    monkeypatch.setattr(install.subprocess, "check_output", lambda *_, **__: listed)
    assert install.pip_settings() == {
        "index-url": "https://environment.example",
        "extra-index-url": "https://a.example https://b.example",
    }


def test_uv_comes_from_the_lock(install):
    """What pip installs is the uv of the lock, with its hashes."""
    assert re.match(r"uv==[\d.]+ +--hash=sha256:", install.locked_requirement("uv"))


def test_a_moved_environment_is_made_anew(install, tmp_path, monkeypatch):
    """An environment whose scripts name another place does not count as one that works."""
    assert install.works()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip").write_text("#!/elsewhere/.venv/bin/python\n")
    monkeypatch.setattr(install, "VENV", str(tmp_path))
    assert not install.works()


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock"])
def test_a_change_installs_again(install, tmp_path, monkeypatch, name):
    """Touching nothing keeps the environment; a changed pyproject.toml or lock asks for another one."""
    for file in ("pyproject.toml", "requirements.lock"):
        (tmp_path / file).write_text("before")
    monkeypatch.chdir(tmp_path)
    before = install.fingerprint()
    assert install.fingerprint() == before
    (tmp_path / name).write_text("after")
    assert install.fingerprint() != before


def test_extras_add_up(install, monkeypatch):
    """An extra that is installed stays; asking for less, or for the same, installs nothing."""
    record = {"inputs": install.fingerprint(), "extras": ["mem0", "test"]}
    calls = []
    monkeypatch.setattr(install, "recorded", lambda: record)
    monkeypatch.setattr(install, "install", calls.append)
    install.ensure(set())
    install.ensure({"mem0"})
    assert calls == []
    install.ensure({"minilm"})
    assert calls == [{"inputs": install.fingerprint(), "extras": ["mem0", "minilm", "test"]}]


def test_an_unknown_extra_is_refused(install):
    """A misspelt extra, which uv would pass over, ends with the extras there are."""
    with pytest.raises(SystemExit, match=r"no extra mem: choose among .*mem0, minilm"):
        install.ensure({"mem", "mem0"})


def test_a_missing_package_is_named_to_who_may_not_install_it(install, monkeypatch):
    """Without root, what is missing ends in the command that brings it."""
    monkeypatch.setattr(install.os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit, match="cannot make environments: as root: apt install python3-venv"):
        install.apt_install("python3-venv", "this Python cannot make environments")


def test_what_makes_environments_is_seen_to_first(install, monkeypatch):
    """A Python without ensurepip, as Debian ships it, gets python3-venv before the environment is made."""
    steps = []
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    monkeypatch.setattr(install, "apt_install", lambda package, _problem: steps.append(package))
    monkeypatch.setattr(install, "run", lambda command: steps.append(command[1:3]))
    install.create()
    assert steps == ["python3-venv", ["-m", "venv"]]


def test_an_old_python_is_told_what_is_needed(install, monkeypatch):
    """A Python before 3.11 ends with its version, the one needed, and how to name another."""
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"Python 3\.9 is too old.*3\.11 or newer.*PYTHON="):
        install.main([])


def test_ci_says_what_is_missing(tmp_path):
    """Without the shared folder beside the checkout .ci/run fails at once and names it."""
    script = tmp_path / "checkout" / ".ci" / "run"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / ".ci" / "run").read_bytes())
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert "../shared/data is missing" in done.stderr


def test_make_lists_its_targets():
    """`make` alone lists every target that is meant for people, each with a line on it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    done = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    for target in ("install", "up", "test", "lint", "bench", "screenshots", "clean"):
        assert re.search(rf"^ +{target} +\S", done.stdout, re.MULTILINE), target
