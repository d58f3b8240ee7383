"""What a client's transport must do. Floor 2.

A transport carries frames both ways and knows no rule of the protocol: see ``stdio``, ``memory``,
``http`` and ``http_sse``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from raxol_sync._deadline import Deadline
from raxol_sync.client.frames import Frame
from raxol_sync.client.signals import Signal
from raxol_sync.protocol.wire import Incoming

OnMessage = Callable[[Incoming | Signal], None]
OnLost = Callable[[BaseException], None]


class Transport(Protocol):
    """One connection to a server. Thread-safe; used once, never started again."""

    def start(self, on_message: OnMessage, on_lost: OnLost) -> None:
        """Connect; from now on call ``on_message`` for each message, in order, one at a time.

        ``on_lost(error)`` is called at most once, after the last message, when the connection ends
        without ``close`` having been called.

        Raises:
            ConnectFailed: there is no connection.
        """

    def put(self, frame: Frame) -> bool:
        """Queue a frame, in the order of the calls; return whether there was room.

        Never blocks and does no I/O: the session's lock is held.
        """

    def retract(self, frame: Frame) -> bool:
        """Take a frame back that no byte has left of; return whether it could be done.

        Over HTTP also one that has left, as far as closing its response cancels it.
        """

    def flush(self, *, inline: bool) -> None:
        """Send what is queued, soon. Never blocks. ``inline``: this thread may do it itself."""

    def open_stream(self) -> bool:
        """Open a stream for what the server says unasked, if there is none yet.

        Return whether there is one. May take a second.
        """

    def complaint(self) -> str:
        """Return what was wrong with what came, as the end of a sentence; may be empty."""

    def close(self, deadline: Deadline, *, lost: bool = False) -> None:
        """End the connection and what serves it: processes, threads, descriptors. Idempotent.

        ``lost``: the connection is gone already, so there is nobody to be polite to.
        """
