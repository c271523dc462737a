"""Which configuration is in force, and what is found beside it."""

import socket
import sys

import pytest

from collectors import cli
from store.settings import load_settings


@pytest.fixture
def memtrend(monkeypatch):
    """Call memtrend in a folder, in this process; $MEMTREND_CONFIG is restored afterwards."""
    monkeypatch.setenv("MEMTREND_CONFIG", "")

    def call(folder, *arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["memtrend", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code

    return call


def test_config_counts_for_the_dashboard(tmp_path, memtrend, monkeypatch):
    """`--config` is what the pages read, too, and they read it by themselves, wherever they stand."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "other.toml").write_text('[database]\nurl = "sqlite:///other.db"\n')
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    served = []

    def serve(*address):
        monkeypatch.chdir(tmp_path / "elsewhere")
        served.append(load_settings().database.url.get_secret_value())

    monkeypatch.setattr("dashboard.server.main", serve)
    assert memtrend(tmp_path, "--config", "other.toml", "dashboard", "--port", str(port)) == 0
    assert served == [f"sqlite:///{tmp_path / 'other.db'}"]


def test_adapters_beside_the_configuration(tmp_path, memtrend, capsys):
    """An adapter is found beside the configuration, wherever memtrend is started; ours are not replaced."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home, elsewhere, home / "store"):
        folder.mkdir()
    (home / "store" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    (home / "besides.py").write_text(
        "class Besides:\n"
        "    def __init__(self):\n        self.texts = []\n"
        "    def write(self, text):\n        self.texts.append(text)\n"
        "    def search(self, query, k):\n        return self.texts[-k:]\n"
    )
    (home / "memtrend.toml").write_text('[backends.ours]\ntype = "besides:Besides"\n')
    assert memtrend(elsewhere, "--config", "../home/memtrend.toml", "doctor", "ours") in (0, 1)
    assert "ok  recall" in capsys.readouterr().out
