"""What an embedder may say about the HTTP transport, checked. Floor 3."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from raxol_sync._deadline import check_count, check_seconds
from raxol_sync.hooks import check_hook
from raxol_sync.protocol.wire import MAX_MESSAGE_BYTES
from raxol_sync.server.http.guard import Names

Authenticate = Callable[[Mapping[str, Any]], object]

MAX_SESSIONS = 1024
SESSION_IDLE = 1800.0  # seconds
MAX_STREAMS = 512
KEEP_ALIVE = 15.0  # seconds


@dataclass(frozen=True)
class Options:
    """One application's settings.

    Attributes:
        path: the endpoint's path, ``""`` for the root of where it is mounted.
        names: which hosts and origins are served.
        authenticate: called with each request's environ (see ``Server.wsgi_app``), or ``None``.
        www_authenticate: what a 401 says in that header.
        max_body_bytes: the longest request body.
        max_sessions: how many legacy sessions there are at once; 0: none are made.
        session_idle_timeout: seconds after which an unused session ends; ``None``: never.
        max_streams: how many event streams are open at once.
        keep_alive: seconds of silence on a stream after which a comment is sent.
    """

    path: str
    names: Names
    authenticate: Authenticate | None
    www_authenticate: str
    max_body_bytes: int
    max_sessions: int
    session_idle_timeout: float | None
    max_streams: int
    keep_alive: float


def options(
    path: str = "/mcp",
    *,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    authenticate: Authenticate | None = None,
    www_authenticate: str = "Bearer",
    max_body_bytes: int = MAX_MESSAGE_BYTES,
    max_sessions: int = MAX_SESSIONS,
    session_idle_timeout: float | None = SESSION_IDLE,
    max_streams: int = MAX_STREAMS,
    keep_alive: float = KEEP_ALIVE,
) -> Options:
    """Return checked settings.

    Raises:
        TypeError, ValueError: one of them is not what it must be; in words.
    """
    check_hook("authenticate", authenticate)
    if not www_authenticate.isascii() or not www_authenticate.isprintable():
        raise ValueError("www_authenticate must be printable ASCII: it is a header's value")
    seconds = check_seconds("keep_alive", keep_alive)
    if seconds is None or seconds <= 0:
        raise ValueError("keep_alive must be a number of seconds above 0")
    return Options(
        path=_path(path),
        names=Names(allowed_hosts, allowed_origins),
        authenticate=authenticate,
        www_authenticate=www_authenticate,
        max_body_bytes=check_count("max_body_bytes", max_body_bytes),
        max_sessions=check_count("max_sessions", max_sessions, least=0),
        session_idle_timeout=check_seconds("session_idle_timeout", session_idle_timeout),
        max_streams=check_count("max_streams", max_streams, least=0),
        keep_alive=seconds,
    )


def _path(path: object) -> str:
    if not isinstance(path, str) or not path.startswith("/") or "?" in path or "#" in path:
        raise ValueError(f"path must begin with a slash, as '/mcp' does, not {path!r}")
    return path.rstrip("/").encode("utf-8").decode("latin-1")  # as WSGI has paths
