"""Where the file of a record lies, and what becomes of it while it is open."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from store import queries, writes
from store.database import Database, open_database
from store.dialects import place
from store.dialects.place import network_file_system
from store.errors import DatabaseError, RecordGone, RecordReplaced

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
23 22 0:20 / /proc rw,nosuid - proc proc rw
30 22 0:50 / /home rw,relatime shared:1 - {kind} server:/export rw,vers=4.2
31 30 254:3 / /home/local rw,relatime - xfs /dev/vdb rw
32 22 0:51 / /mnt/with\040space rw,relatime - {kind} server:/other rw
33 22 0:52 / /over rw - {kind} server:/under rw
34 22 0:53 / /over rw - tmpfs tmpfs rw
35 22 0:54 / /under rw - tmpfs tmpfs rw
36 22 0:55 / /under rw - {kind} server:/over rw
""".strip()


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.mark.parametrize("network", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"])
@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/home/ann/record.db", True),
        ("/home", True),
        ("/mnt/with space/record.db", True),
        ("/under/record.db", True),
        ("/over/record.db", False),
        ("/home/local/record.db", False),
        ("/homes/record.db", False),
        ("/record.db", False),
    ],
)
def test_a_network_file_system_is_known(network: str, path: str, shared: bool) -> None:
    """The deepest mount over a path counts, and of two on one point the later."""
    found = network_file_system(Path(path), MOUNTS.format(kind=network))
    assert found == (network if shared else None)


@pytest.mark.parametrize("local", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuse.mergerfs"])
def test_a_local_file_system_is_none(local: str) -> None:
    """Disks of this machine are fine, whatever they are formatted with."""
    assert network_file_system(Path("/home/ann/record.db"), MOUNTS.format(kind=local)) is None


def test_what_is_really_mounted_is_read(tmp_path: Path) -> None:
    """The kernel's own list can be read; without one nothing is claimed."""
    assert network_file_system(Path("/proc/self")) is None
    assert network_file_system(tmp_path, "") is None


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    """A record lies where its link leads to."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    mounts = f"22 1 254:0 / / rw - ext4 x rw\n30 22 0:5 / {tmp_path.resolve()}/there rw - nfs4 s:/x rw"
    assert network_file_system(tmp_path / "here" / "record.db", mounts) == "nfs4"


def test_without_a_list_of_mounts_nobody_can_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel keeps no such list nothing is refused."""
    monkeypatch.setattr(place, "MOUNTS", tmp_path / "none")
    assert network_file_system(tmp_path) is None


# While it is open


def test_a_record_that_is_gone_is_neither_written_nor_made_anew(db: Database, tmp_path: Path) -> None:
    """Reads and writes say that it is gone, over connections old and new, until it is back."""
    (tmp_path / "record.db").rename(tmp_path / "away.db")
    for _ in range(2):
        with pytest.raises(RecordGone, match=r"record\.db is gone: .* put it back, or stop"):
            writes.add_event(db, "info", "test", "lost")
        with pytest.raises(RecordGone):
            queries.events(db)
        db._engine.dispose()
    assert "is gone" in (db.trouble() or "")
    assert not (tmp_path / "record.db").exists()
    (tmp_path / "away.db").rename(tmp_path / "record.db")
    writes.add_event(db, "info", "test", "kept")
    assert [event.message for event in queries.events(db)] == ["kept"]
    assert db.trouble() is None


def test_another_file_in_its_place_is_not_touched(db: Database, url: str, tmp_path: Path) -> None:
    """A record that was replaced is neither read nor written, at its closing neither."""
    with closing(open_database(f"sqlite:///{tmp_path / 'other.db'}")) as other:
        writes.add_event(other, "info", "test", "of the other")
    before = (tmp_path / "other.db").read_bytes()
    for part in tmp_path.glob("record.db*"):
        part.rename(tmp_path / f"old-{part.name}")
    (tmp_path / "other.db").rename(tmp_path / "record.db")
    with pytest.raises(RecordReplaced, match="replaced by another file"):
        writes.add_event(db, "info", "test", "lost")
    db.close()
    assert (tmp_path / "record.db").read_bytes() == before
    with closing(open_database(url)) as new:
        assert [event.message for event in queries.events(new)] == ["of the other"]


def test_little_room_is_told_before_it_is_none(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room for a run is a trouble, and told with what is left there."""
    monkeypatch.setattr(place.Place, "free", lambda place: 4_000_000)
    assert "no more than 4 MB are free on its disk; make room" in (db.trouble() or "")


def test_what_may_not_be_written_is_not(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose rights were taken away takes no more writes, though it is open; it can be read."""
    monkeypatch.setattr(place.Place, "is_writable", lambda place: False)
    with pytest.raises(DatabaseError, match="it is read-only; make the file and its folder writable"):
        writes.add_event(db, "info", "test", "lost")
    assert queries.events(db) == []
    assert "it is read-only" in (db.trouble() or "")
