"""Noticing that a client has gone, with what the host offers. Floor 2.

The embedded server tells at once. gunicorn hands over its socket, waitress a question that can be
asked; both are looked at now and then. Elsewhere the next write shows it: keep-alive comments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from raxol_sync.server.http.host import HOST_KEY

LOOK = 0.5  # seconds between two looks at a socket


class Presence:
    """One request's client. For the request's thread, but for ``end_stream``."""

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self._host = environ.get(HOST_KEY)
        self._socket = environ.get("gunicorn.socket") if self._host is None else None
        self._asked = environ.get("waitress.client_disconnected")
        self._watched = False
        self._on_left: Callable[[], object] | None = None

    def watch(self, on_gone: Callable[[], object]) -> None:
        """Have ``on_gone()`` called once if the client goes, where the host can tell. Once only."""
        if self._host is not None and not self._watched:
            self._watched = True

            def gone() -> None:
                on_gone()
                on_left = self._on_left
                if on_left is not None:
                    on_left()

            self._host.watch(gone)

    def leads_to(self, on_left: Callable[[], object]) -> None:
        """Have ``on_left()`` called as well, behind what ``watch`` was given, on the same thread.

        So a client that closes one stream and opens the next finds the first one's place free.
        """
        self._on_left = on_left

    def end_stream(self) -> None:
        """Give the host's place for the stream back: what goes out next is its last. Twice is fine.

        From any thread.
        """
        self._on_left = None  # else it and the stream would hold each other for ever
        if self._host is not None:
            self._host.end_stream()

    def step(self, seconds: float) -> float:
        """Return how long to wait until the next look at the client, at most ``seconds``."""
        polled = self._host is None and (self._socket is not None or self._asked is not None)
        return min(seconds, LOOK) if polled else seconds

    def gone(self) -> bool:
        """Return whether the client is known to have gone. Does not block."""
        if self._host is not None:
            return False  # it says so itself
        if self._asked is not None:
            return bool(self._asked())
        return self._socket is not None and _closed(self._socket)


def _closed(sock: Any) -> bool:
    """Return whether a socket's peer has closed it; what it has sent is left where it is."""
    import select
    import socket

    try:
        if hasattr(sock, "pending") and sock.pending():  # TLS: something to read is no end
            return False
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            ready = bool(poll.poll(0))
        else:
            ready = bool(select.select([sock], [], [], 0)[0])
        if not ready or hasattr(sock, "pending"):  # TLS cannot be peeked into
            return False
        return not sock.recv(1, socket.MSG_PEEK | getattr(socket, "MSG_DONTWAIT", 0))
    except (BlockingIOError, InterruptedError):
        return False
    except (OSError, ValueError):
        return True
