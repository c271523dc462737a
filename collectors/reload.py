"""The settings of a process that runs for long: they follow their file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from collectors.configured import configured
from collectors.schedule import check_schedules
from store.settings import CONFIG_VARIABLE, Settings, SettingsError


class Stamp(NamedTuple):
    mtime_ns: int
    size: int
    inode: int


class SettingsFile:
    """`settings` is what is in force. Raises `SettingsError` when what is there at first is wrong."""

    def __init__(self) -> None:
        self._path = Path(os.environ.get(CONFIG_VARIABLE) or "memtrend.toml")
        self._seen = self._read = self._stamp()
        self.settings = self._load()

    def reread(self) -> Settings | None:
        """What the file says now, once after each change and as soon as it rests: one call apart, so that
        half a file is not taken for a broken one. Raises `SettingsError`; nothing comes into force here."""
        stamp = self._stamp()
        rests, self._seen = stamp == self._seen, stamp
        if stamp == self._read or not rests:
            return None
        self._read = stamp
        settings = self._load()
        if settings.source is None:
            raise SettingsError(f"{self._path} is gone: put it back, or start anew for the defaults")
        return settings

    def read_again(self) -> None:
        """Let the next `reread` give what the last one gave: it could not be followed yet."""
        self._read = None

    def _load(self) -> Settings:
        settings = configured()
        check_schedules(settings.schedules)
        return settings

    def _stamp(self) -> Stamp | None:
        try:
            stat = self._path.stat()
        except OSError:  # it is gone, or the way to it
            return None
        return Stamp(stat.st_mtime_ns, stat.st_size, stat.st_ino)
