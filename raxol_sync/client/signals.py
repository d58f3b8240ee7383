"""What an HTTP transport tells the machine beside messages (rows C17, C22, C29). Floor 1; pure."""

from __future__ import annotations

from typing import NamedTuple

from raxol_sync.errors import MCPError


class Failed(NamedTuple):
    """The request with this id gets no answer, for this reason."""

    id: int
    error: MCPError


class Rejected(NamedTuple):
    """The server no longer knows the session.

    Attributes:
        id: the request that was answered so, ``None`` for a stream or a notification.
        current: whether it was the session in use; else another rejection has been told before.
        sent: whether the request was sent at all.
    """

    id: int | None
    current: bool
    sent: bool = True


class Opened(NamedTuple):
    """``notifications/initialized`` was taken, and the GET stream is open if there is one.

    Attributes:
        stream: whether there is one.
    """

    stream: bool


Signal = Failed | Rejected | Opened
