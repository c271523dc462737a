"""Which configuration is in force, and what is found beside it."""

import socket
import sys

import pytest

from collectors import cli
from store.settings import load_settings


@pytest.fixture
def memtrend(monkeypatch):
    """Call memtrend in a folder, in this process; $MEMTREND_CONFIG and the path are restored afterwards."""
    monkeypatch.setenv("MEMTREND_CONFIG", "")
    monkeypatch.setattr(sys, "path", [*sys.path])

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
