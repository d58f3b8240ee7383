"""Whether a request's Host and Origin are ours: DNS rebinding. Floor 1; pure.

A page in a browser may have its own host's name resolve to this machine and then call a local
server. Such a request carries the page's host in Host and Origin. By default only loopback names
are served; a server that is reached by another name says so (``allowed_hosts``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANY = "*"
ADDRESSES = "<addresses>"
"""Stands for every address that is written as one: no name, so nobody can have it resolve here."""

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.%]{2,64}\]|[a-z0-9._-]{1,255})(?::(?P<port>[0-9]{1,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^/?#@\s]+)")
_ADDRESS = re.compile(r"\[.*\]|[0-9]{1,3}(\.[0-9]{1,3}){3}")
_LONGEST = 255 + len(":65535")  # characters of a host that can be one
_PORTS = {"http": "80", "https": "443"}


class Names:
    """The hosts and origins that are served. Immutable."""

    def __init__(self, hosts: Collection[str] | None, origins: Collection[str] | None) -> None:
        """``None``: loopback hosts; origins that are those hosts themselves.

        Raises:
            TypeError: a ``str`` stands where a collection of them must.
            ValueError: an entry is no host, or no origin.
        """
        self.hosts = frozenset(
            _checked("allowed_hosts", LOOPBACK if hosts is None else hosts, _host)
        )
        self.origins = frozenset(_checked("allowed_origins", origins or (), _origin))

    def host_problem(self, host: str | None) -> str | None:
        """Return why a ``Host`` header is refused. HTTP/1.0 has none, and no browser either."""
        if host is None or ANY in self.hosts:
            return None
        if len(host) <= _LONGEST and _serves(self.hosts, host):
            return None
        return "this server is not known by the name in the header Host; see allowed_hosts"

    def origin_problem(self, origin: str | None, host: str | None) -> str | None:
        """Return why an ``Origin`` header is refused; without one there is no browser."""
        if origin is None or self.names_origin(origin):
            return None
        given = origin.lower()
        found = _ORIGIN.fullmatch(given)
        theirs = _HOST.fullmatch(found["host"]) if found is not None else None
        ours = _HOST.fullmatch(host.lower()) if host is not None else None
        if found is not None and theirs is not None and ours is not None:
            # The page was served by this very host; or both are on this machine, where no page of
            # a stranger's can be.
            if _with_port(theirs, found["scheme"]) == _with_port(ours, found["scheme"]):
                return None
            if theirs["name"] in LOOPBACK and ours["name"] in LOOPBACK:
                return None
        return "pages of that origin may not call this server; see allowed_origins"

    def names_origin(self, origin: str) -> bool:
        """Return whether an origin was allowed by name: its pages may read what we answer."""
        return ANY in self.origins or origin.lower() in self.origins


@lru_cache(maxsize=64)  # nearly all requests name the same one
def _serves(hosts: frozenset[str], host: str) -> bool:
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return False
    name = found["name"]
    if name in hosts or found[0] in hosts:
        return True
    return ADDRESSES in hosts and _ADDRESS.fullmatch(name) is not None


def _with_port(host: re.Match[str], scheme: str) -> tuple[str, str | None]:
    return host["name"], host["port"] or _PORTS.get(scheme)


def _checked(name: str, given: Collection[str], check: Any) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{name} takes a collection of names, not one str")
    return [check(entry) for entry in given]


def _host(entry: str) -> str:
    text = str(entry).strip().lower()
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"  # an IPv6 address without its brackets
    if text not in (ANY, ADDRESSES) and _HOST.fullmatch(text) is None:
        raise ValueError(f"allowed_hosts: {entry!r} is no host name, such as 'example.com:8443'")
    return text


def _origin(entry: str) -> str:
    text = str(entry).strip().lower().rstrip("/")
    if text != ANY and _ORIGIN.fullmatch(text) is None:
        raise ValueError(f"allowed_origins: {entry!r} is no origin, such as 'https://example.com'")
    return text


def problem_of(names: Names, environ: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return status and words for a request that is refused, ``None`` for one that is not."""
    host = environ.get("HTTP_HOST")
    reason = names.host_problem(host)
    if reason is not None:
        return 421, reason
    reason = names.origin_problem(environ.get("HTTP_ORIGIN"), host)
    return None if reason is None else (403, reason)
