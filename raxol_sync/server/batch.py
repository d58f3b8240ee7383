"""A box for each request of a batch; all lead to one channel. Floor 2. Revision 2025-03-26."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

from raxol_sync.errors import INVALID_REQUEST
from raxol_sync.protocol.versions import MODERN, era_of
from raxol_sync.protocol.wire import Malformed
from raxol_sync.server.channel import Channel
from raxol_sync.server.outbox import PATIENCE, Box

MAX_BATCH = 1000  # messages


class _Count:
    """How many requests of a batch lack their response. Thread-safe."""

    def __init__(self, count: int) -> None:
        # Guards: left. Leaf.
        self.lock = threading.Lock()
        self.left = count

    def down(self) -> bool:
        """Count one down; return whether that was the last."""
        with self.lock:
            self.left -= 1
            return self.left == 0


class Part(Box):
    """One request's box. Thread-safe."""

    own = True

    def __init__(self, channel: Channel, count: _Count) -> None:
        self._channel = channel
        self._count = count
        self._ended = False  # set under the server's lock

    @classmethod
    def split(cls, channel: Channel, count: int) -> list[Part]:
        """Return as many boxes; the channel closes when all have ended."""
        shared = _Count(count)
        return [cls(channel, shared) for _ in range(count)]

    def put(
        self,
        message: Any,
        size: int | None = None,
        *,
        only: Hashable = None,
        last: bool = False,
        flushed: bool = False,
    ) -> bool:
        """Queue a message in the batch's channel."""
        if self._ended:
            return True
        done = self._channel.put(message, size, only=only)
        if last:
            self.close()
        return done

    def close(self) -> None:
        """Note that this request has ended."""
        if not self._ended:
            self._ended = True
            if self._count.down():
                self._channel.close()

    def ease(self, seconds: float = PATIENCE) -> None:
        """Wait for the batch's reader while it is far behind."""
        self._channel.ease(seconds)


def batchable(value: object) -> object:
    """Return a member of a batch as it is, or what is wrong with it.

    ``initialize`` stands alone. So does every request of the stateless era, which has no batches:
    how one ends, and what its headers must say, depends on its being a POST of its own.
    """
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return value
    params = value.get("params")
    if value["method"] == "initialize":
        reason = "initialize must not be part of a batch"
    elif era_of(value["method"], params if isinstance(params, dict) else {}) == "modern":
        reason = f"requests of revision {MODERN.name} must not be part of a batch"
    else:
        return value
    request_id = value.get("id")
    usable = request_id if type(request_id) in (int, str) else None
    return Malformed(INVALID_REQUEST, reason, usable, "id" in value)
