"""One HTTP request's hold on its socket, and why it failed (rows C04, C10). Floor 2.

Closing a response from another thread does not wake who reads it, and before headers come there is
none. So each request has a ``Handle``: the connection attaches its socket while it connects and
while it serves the request, and ``Handle.end`` shuts that socket down.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from raxol_sync.errors import MCPError


class WebError(Exception):
    """Why there is no (whole) response. Holds no URL, header or exception of the means.

    Attributes:
        connected: whether the request may have reached the server.
        reason: in words.
        refusal: an error of ours that says more, where there is one.
        stale: the connection had been used before, and ended without an answer: the server was
            perhaps closing it when the request was sent.
    """

    def __init__(self, connected: bool, reason: str, refusal: MCPError | None = None) -> None:
        super().__init__(reason)
        self.connected = connected
        self.reason = reason
        self.refusal = refusal
        self.stale = False


class Handle:
    """One request's hold on its socket. Thread-safe.

    The request's thread attaches and detaches; any thread may ``end``.

    Attributes:
        reached: there was a connection to send the request on.
    """

    __slots__ = ("_ended", "_lock", "_socket", "_waking", "reached")

    def __init__(self) -> None:
        # Guards: _socket, _waking, _ended. A socket is shut down under it, which never waits: else
        # it could be another request's by then.
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._waking: threading.Event | None = None
        self._ended = False
        self.reached = False

    @property
    def ended(self) -> bool:
        """Whether somebody has ended this request."""
        return self._ended

    def attach(self, sock: socket.socket | None) -> None:
        """From now on ``end`` shuts this socket down."""
        with self._lock:
            self._socket = sock
            if self._ended and sock is not None:
                _shut_down(sock)

    def detach(self) -> None:
        """The connection no longer serves this request."""
        with self._lock:
            self._socket = None

    def end(self) -> None:
        """End the request: what waits for its socket, wakes. Idempotent."""
        with self._lock:
            self._ended = True
            if self._socket is not None:
                _shut_down(self._socket)
            waking = self._waking
        if waking is not None:
            waking.set()

    def waking(self) -> threading.Event:
        """Return an event that ``end`` sets; its waiter may have others set it too."""
        with self._lock:
            self._waking = self._waking or threading.Event()
            return self._waking

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the request is ended; return whether it is."""
        waking = self.waking()
        return self._ended or waking.wait(seconds)


def _shut_down(sock: socket.socket) -> None:
    with suppress(OSError):
        # Not the method of an SSLSocket, which also drops what its reader is using.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
