"""Dockerfile, compose.yaml and the systemd unit, as they are written."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from typer.main import get_command

from collectors.cli import app
from collectors.lifeline import STOP_S
from dashboard import machines
from dashboard.data import LOOPBACK
from dashboard.hosts import KnownHosts
from store.hiding import hidden
from store.settings import load_settings
from tests.container.image import ROOT, context, copied, environment, health_check, instructions, values

PINNED = re.compile(r"[a-z]+:\d+(\.\d+)+-[a-z-]+")
"""An image whose version moves with none of its own."""
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
UNIT = re.search(r"(?s)```ini\n(.*?)```", (ROOT / "docs" / "operations.md").read_text(encoding="utf-8"))


# The Dockerfile


def test_every_step_is_a_script_of_the_checkout() -> None:
    """No RUN has logic of its own: each is a script of scripts/ with its arguments, run without a shell."""
    steps = [json.loads(value) for value in values("RUN")]
    assert steps
    for program, script, *_ in steps:
        assert program in ("python3", "sh")
        assert (ROOT / script).parent == ROOT / "scripts"
        assert (ROOT / script).is_file()


def test_base_images_are_pinned() -> None:
    """Every stage begins with a version of an image, and with the same: an environment moves between them."""
    bases = {value.split(" AS ")[0] for value in values("FROM")}
    assert len(bases) == 1
    assert all(PINNED.fullmatch(base) for base in bases)


def test_what_is_copied_is_there() -> None:
    """Each source of a COPY is in the checkout and not left out by .dockerignore."""
    files = context()
    for options, sources, _ in map(copied, values("COPY")):
        for source in sources if "from" not in options else []:
            assert any(f"{file}/".startswith(f"{source}/") for file in files), source


def test_the_context_is_lean() -> None:
    """An image is built from what it is made of and nothing else, least of all a record or a secret."""
    wanted = {source for _, sources, _ in map(copied, values("COPY")) for source in sources}
    files = context() - {"Dockerfile", ".dockerignore"}
    assert not [file for file in files if not any(f"{file}/".startswith(f"{one}/") for one in wanted)]
    assert not [file for file in files if "__pycache__" in file or file.endswith((".db", ".pyc"))]


def test_it_runs_as_nobody_in_particular() -> None:
    """From USER on nothing changes the user, who is a number other than root's and owns the volume."""
    names = [name for name, _ in instructions()]
    (user,) = values("USER")
    assert int(user.partition(":")[0]) > 0
    assert not {"RUN", "COPY", "ADD"} & set(names[names.index("USER") :])
    owned = [options["chown"] for options, *_ in map(copied, values("COPY")) if "chown" in options]
    assert owned == [user]


def test_no_secret_is_in_the_image() -> None:
    """Nothing that the image sets has the name or the look of a secret."""
    assert hidden(environment()) == environment()
    assert values("ARG") == []


def test_the_image_starts_what_there_is() -> None:
    """Entry point, usual command and health check are commands that exist; the check needs no curl."""
    (entry,) = map(json.loads, values("ENTRYPOINT"))
    (usual,) = map(json.loads, values("CMD"))
    assert entry == ["/opt/memtrend/bin/dumb-init", "/opt/memtrend/bin/memtrend"]
    assert usual[0] in COMMANDS
    program, command = health_check()
    assert (program, command in COMMANDS) == (entry[-1], True)


@pytest.mark.parametrize(
    ("host", "code"),
    [("localhost:8501", 200), ("127.0.0.1:8501", 200), ("evil.example:8501", 421), ("memtrend.example", 421)],
)
def test_the_image_answers_under_the_names_of_loopback(host: str, code: int, monkeypatch) -> None:
    """Though the dashboard of a container listens on all addresses, a page of another site does not reach it
    by a name that was made to lead to the port on loopback."""
    for name, value in environment().items():
        if name.startswith("MEMTREND_"):
            monkeypatch.setenv(name, value)
    machines.forget()
    monkeypatch.setattr(
        "dashboard.hosts.st.get_option", {"server.address": load_settings().dashboard.host}.get
    )
    assert load_settings().dashboard.host not in LOOPBACK
    client = TestClient(KnownHosts(PlainTextResponse("answered")))
    assert client.get("/", headers={"Host": host}).status_code == code


# compose.yaml


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8")))


def ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The services that run memtrend."""
    return {name: one for name, one in compose["services"].items() if one["image"] == "memtrend"}


def make_secrets(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "scripts" / "container_secrets.sh"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


def test_compose_accepts_the_file(compose: dict[str, Any]) -> None:
    """compose.yaml keeps the Compose Specification, and every volume and secret that it uses is declared."""
    read = PyCompose.from_json(json.dumps(compose))  # by YAML it would not know merge keys, as Docker does
    read.validate()
    read.to_spec()
    assert set(read.service_names()) == {"database", "collector", "stand-by", "dashboard"}
    waited_for = {name for service in compose["services"].values() for name in service.get("depends_on", ())}
    assert waited_for <= set(read.service_names())


def test_compose_runs_each_part(compose: dict[str, Any]) -> None:
    """A collector, a dashboard, and on request a second collector, each by a command that there is."""
    commands = {name: service["command"] for name, service in ours(compose).items()}
    assert {name: command[0] for name, command in commands.items()} == {
        "collector": "collect",
        "stand-by": "collect",
        "dashboard": "dashboard",
    }
    for name, *options in commands.values():
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert set(options) <= known
    assert compose["services"]["stand-by"]["profiles"] == ["stand-by"]
    for name in ("collector", "stand-by"):
        _, program, *asked = ours(compose)[name]["healthcheck"]["test"]
        assert (program, asked) == ("memtrend", ["alive", "--stand-by"])
    assert PINNED.fullmatch(compose["services"]["database"]["image"])


def test_compose_publishes_on_loopback_alone(compose: dict[str, Any]) -> None:
    """The one port that is reachable from outside of the containers is the dashboard's, on this machine."""
    published = {name: one["ports"] for name, one in compose["services"].items() if "ports" in one}
    (port,) = values("EXPOSE")
    assert published == {"dashboard": [f"127.0.0.1:{port}:{port}"]}


def test_compose_waits_for_a_stop(compose: dict[str, Any]) -> None:
    """No part is killed while it still may take its time to stop."""
    for service in ours(compose).values():
        assert int(service["stop_grace_period"].removesuffix("s")) > STOP_S


def test_the_password_is_in_files_alone(compose: dict[str, Any], tmp_path: Path, monkeypatch) -> None:
    """The settings of compose.yaml take the record's URL and the token from the secrets that the script
    makes: one password in both of its files, and none in compose.yaml."""
    assert make_secrets(tmp_path / "secrets").returncode == 0
    written = {path.name: path.read_text().strip() for path in (tmp_path / "secrets").iterdir()}
    assert {one["file"] for one in compose["secrets"].values()} == {f"secrets/{name}" for name in written}
    for name, value in compose["services"]["dashboard"]["environment"].items():
        monkeypatch.setenv(name, value.replace("/run/", f"{tmp_path}/"))
    of = load_settings()
    assert of.api.token
    assert of.api.token.get_secret_value() == written["api-token"]
    url = f"postgresql://memtrend:{written['database-password']}@database/memtrend"
    assert of.database.url.get_secret_value() == url
    assert not [text for text in written.values() if text in (ROOT / "compose.yaml").read_text()]


def test_secrets_are_whole_or_not_there(tmp_path: Path) -> None:
    """A script that is killed before its last file leaves no folder that a second call would find, which
    makes all of them."""
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "od").write_text(
        f'#!/bin/sh\n[ -e "{broken}/once" ] && kill -9 0\n: >"{broken}/once"\necho 1\n'
    )
    (broken / "od").chmod(0o755)
    folder = tmp_path / "secrets"
    command = ["sh", str(ROOT / "scripts" / "container_secrets.sh"), str(folder)]
    killed = subprocess.run(command, env={"PATH": f"{broken}:{os.defpath}"}, start_new_session=True)
    assert (killed.returncode, folder.exists()) == (-signal.SIGKILL, False)
    assert make_secrets(folder).returncode == 0
    assert len([*folder.iterdir()]) == 3


def test_secrets_are_made_once(tmp_path: Path) -> None:
    """They are long and differ, no one else gets into their folder, and a second call changes nothing."""
    folder = tmp_path / "secrets"
    make_secrets(folder)
    before = {path.name: path.read_text() for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o444}
    assert len({*before.values()}) == 3
    assert min(map(len, before.values())) > 64
    refused = make_secrets(folder)
    assert (refused.returncode, "is there already" in refused.stderr) == (1, True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


# The systemd unit


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The one of docs/operations.md, with a program that is on this machine."""
    assert UNIT
    program = tmp_path / "memtrend"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    file = tmp_path / "memtrend@.service"
    file.write_text(UNIT[1].replace("/opt/memtrend/bin/memtrend", str(program)))
    return file


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="apt install systemd")
@pytest.mark.parametrize("role", ["up", "collect", "dashboard"])
def test_systemd_accepts_the_unit(unit: Path, role: str) -> None:
    """systemd finds nothing wrong with the unit of either role."""
    instance = unit.with_name(f"memtrend@{role}.service")
    instance.write_text(unit.read_text())
    done = subprocess.run(["systemd-analyze", "verify", str(instance)], capture_output=True, text=True)
    assert (done.returncode, str(unit.parent) in done.stderr) == (0, False), done.stderr


def test_the_unit_stops_and_starts_again() -> None:
    """It has the time to stop, is started again after a failure but not after a wrong configuration, and its
    secrets come as credentials."""
    assert UNIT
    lines = UNIT[1].splitlines()
    for line in ("Restart=on-failure", "RestartPreventExitStatus=2", "KillMode=mixed", "User=memtrend"):
        assert line in lines
    (stop,) = (line.partition("=")[2] for line in lines if line.startswith("TimeoutStopSec="))
    assert int(stop.removesuffix("s")) > STOP_S
    (credential,) = (line.partition("=")[2] for line in lines if line.startswith("LoadCredential="))
    name = credential.partition(":")[0]
    assert f"Environment=MEMTREND_API__TOKEN_FILE=%d/{name}" in lines
