"""Where the file of a record lies: whether it is still the one that was opened, whether it can be written,
and on what kind of file system it is."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from store.errors import RecordGone, RecordReplaced

FULL_BYTES = 16_000_000
"""Less room than that beside a record is none: one run of a large suite takes more."""

MOUNTS = Path("/proc/self/mountinfo")

NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fhgfs", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "orangefs", "smb3", "smbfs", "fuse.ceph", "fuse.davfs", "fuse.gcsfuse",
    "fuse.glusterfs", "fuse.juicefs", "fuse.rclone", "fuse.s3fs", "fuse.smbnetfs", "fuse.sshfs",
})  # fmt: skip
"""Kinds of file systems, as the kernel calls them, whose files other machines may have open as well."""


class Place:
    """The path of a record. Nothing is held against it before `remember`: until then it may be made."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._opened: tuple[int, int] | None = None

    def remember(self) -> None:
        """The file that lies there now is the one that was opened."""
        self._opened = _identity(self.path)

    def check(self) -> None:
        """Raises `RecordGone` and `RecordReplaced`: an open file that was removed takes every write, and
        nobody will ever read it."""
        if self._opened is None or (there := _identity(self.path)) == self._opened:
            return
        if there is None:
            raise RecordGone(
                f"{self.path} is gone: it was removed or moved while it was in use, and nothing is written "
                "until it is back; put it back, or stop what uses it, then: memtrend restore BACKUP"
            )
        raise RecordReplaced(
            f"{self.path} was replaced by another file while it was in use, and nothing is written to "
            "either; start again what used it (and put a backup in its place only with memtrend restore)"
        )

    def is_writable(self) -> bool:
        """By the rights of this user, and by how it is mounted. A file that was opened before its rights were
        taken away would still take what is written."""
        return self._opened is None or os.access(
            self.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        )

    def free(self) -> int | None:
        """Bytes left beside it; None where nobody can tell."""
        with suppress(OSError):
            return shutil.disk_usage(self.path.parent).free
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    """The kind of file system that holds `path` where it is one that machines share, as `nfs4`; else None.

    mounts: what the kernel says is mounted, as in /proc/self/mountinfo; without one (not on Linux) nobody can
    tell."""
    if mounts is None:
        try:
            mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    where = path.resolve()
    over = [mount for mount in map(_mount, mounts.splitlines()) if where.is_relative_to(mount.point)]
    # The deepest, and of several on one point the last, which hides the others.
    kind = max(reversed(over), key=lambda mount: len(mount.point.parts)).kind if over else ""
    return kind if kind in NETWORK else None


class _Mount(NamedTuple):
    point: Path
    kind: str


def _mount(line: str) -> _Mount:
    before, _, after = line.partition(" - ")
    return _Mount(Path(_plain(before.split(" ")[4])), after.split(" ")[0])


def _plain(field: str) -> str:
    r"""Spaces and the like are written as \040."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
