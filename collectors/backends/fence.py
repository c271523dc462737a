"""A worker of a local backend speaks to this machine alone; what else it asks for is refused and remembered.

Guards Python's own sockets. A library that opens its own in C (gRPC, some of Rust) is not seen.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl, urlsplit

HERE = frozenset({"", "localhost", "ip6-localhost", "ip6-loopback"})
URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")


class Fence:
    """`refused` are the addresses asked for since they were last read, in order, each once."""

    def __init__(self) -> None:
        self._refused: dict[str, None] = {}
        self._told: set[str] = set()

    def read(self) -> list[str]:
        fresh = [address for address in self._refused if address not in self._told]
        self._told.update(fresh)
        return fresh

    def close(self) -> None:
        """From now on, in this process."""
        for name in PROXIES:  # one on this machine would lead out of it
            os.environ.pop(name, None)
            os.environ.pop(name.upper(), None)
        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
            self._guard_look_up(name)
        for name in ("connect", "connect_ex", "sendto", "sendmsg"):
            self._guard(name)

    def _guard_look_up(self, name: str) -> None:
        call = getattr(socket, name)

        def guarded(host: Any, *given: Any, **named: Any) -> Any:
            if not is_here(host):
                raise self._refusal(host, socket.gaierror(socket.EAI_NONAME, _said(host)))
            return call(host, *given, **named)

        setattr(socket, name, guarded)

    def _guard(self, name: str) -> None:
        call = getattr(socket.socket, name)

        def guarded(this: socket.socket, *given: Any) -> Any:
            address = given[-1]
            if isinstance(address, tuple) and not is_here(address[0]):
                raise self._refusal(address[0], OSError(errno.ENETUNREACH, _said(address[0])))
            return call(this, *given)

        setattr(socket.socket, name, guarded)

    def _refusal(self, host: Any, error: OSError) -> OSError:
        self._refused[_text(host)] = None
        return error


def is_here(host: Any) -> bool:
    """Whether that is this machine, by its address, or by a name that every machine has for itself."""
    name = _text(host).lower().rstrip(".")
    if host is None or name in HERE:
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def leads_here(place: Any) -> bool:
    """Whether all that an address names is this machine: a host, one with a port, a URL, several hosts of a
    database's URL, libpq's keywords and values. So does a socket's folder; what cannot be read does not."""
    try:
        hosts = _hosts(_text(place)) if place else []
    except ValueError:
        return False
    return bool(hosts) and all(host.startswith("/") or is_here(host) for host in hosts)


def _hosts(place: str) -> list[str]:
    if not URL.match(place):
        if "=" in place or "://" in place:
            return _named(dict(word.partition("=")[::2] for word in shlex.split(place)))
        return [place.strip("[]")] if place.count(":") != 1 else [place.partition(":")[0]]
    url = urlsplit(place)
    given = [urlsplit(f"//{one}").hostname or "" for one in url.netloc.rpartition("@")[2].split(",")]
    return given + _named(dict(parse_qsl(url.query)))


def _named(words: Mapping[str, str]) -> list[str]:
    """By the keywords of libpq, in which a service stands for anything."""
    given = [words[name] for name in ("host", "hostaddr") if name in words] + ["?"] * ("service" in words)
    return [host for hosts in given for host in hosts.split(",")]


def _text(host: Any) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else str(host)


def _said(host: Any) -> str:
    return f"{_text(host)}: refused, since this backend is configured to need this machine alone"
