"""Which requests of a session are on the wire, and which wait for that (row C12). Floor 1; pure.

1. The window counts requests that are on the wire. They leave it when they are answered, or given
   up: then their ``cancelled`` is on the outbox before the next request is.
2. Requests leave the queue first come, first served. One that is sent again (row C17, row C28) goes
   before all that have never been sent.
3. All ids of a session are counted here, those of handshakes and listens too.
"""

from __future__ import annotations

from collections import deque

from raxol_sync.client import frames
from raxol_sync.client.effects import Effect, Entry, Send
from raxol_sync.client.frames import Frame
from raxol_sync.errors import Busy


class Window:
    """The window and the queue of one session. Not thread-safe: the machine's owner serialises.

    Attributes:
        size: how many requests may be on the wire.
        sent: those that are, by id.
        meta: the ``_meta`` of modern requests, encoded; ``None`` in a legacy session.
    """

    def __init__(self, size: int, *, queue_limit: int) -> None:
        """``queue_limit``: how many requests may wait."""
        self.size = size
        self.sent: dict[int, Entry] = {}
        self.meta: bytes | None = None
        self._queue_limit = queue_limit
        self._queue: deque[Entry] = deque()
        self._again: deque[Entry] = deque()  # to be sent again, before the queue
        self._last_id = 0

    @property
    def queued(self) -> int:
        """How many requests wait for room."""
        return len(self._queue) + len(self._again)

    @property
    def full(self) -> bool:
        """Whether the next request would have to wait."""
        return len(self.sent) >= self.size

    def new_id(self) -> int:
        """Return an id that this session has not used."""
        self._last_id += 1
        return self._last_id

    def submit(self, entry: Entry, *, ready: bool, patient: bool) -> list[Effect]:
        """Send a request if the session is ready and has room, else queue it.

        Raises:
            Busy: the queue is full, or it would have to wait and is not ``patient``.
        """
        if ready and not self.full and not self.queued:
            return [self._send(entry)]
        if not patient:
            raise Busy("connection", self.size)
        if self.queued >= self._queue_limit:
            raise Busy("queue", self._queue_limit)
        entry.state = "queued"
        self._queue.append(entry)
        return []

    def put_first(self, entry: Entry) -> None:
        """Queue a request that is to be sent again."""
        entry.state = "queued"
        self._again.append(entry)

    def promote(self) -> list[Effect]:
        """Send what there is room for, oldest first."""
        sent: list[Effect] = []
        while self.queued and not self.full:
            sent.append(self._send((self._again or self._queue).popleft()))
        return sent

    def take(self, request_id: object) -> Entry | None:
        """Take a request out that is on the wire; ``None`` where there is none with this id."""
        entry = self.sent.pop(request_id, None) if type(request_id) is int else None
        if entry is not None:
            entry.state = "done"
        return entry

    def leave_queue(self, entry: Entry) -> None:
        """Take a request out that is queued."""
        (self._again if entry in self._again else self._queue).remove(entry)
        entry.state = "done"

    def clear(self) -> tuple[list[Entry], list[Entry]]:
        """The session has ended: return what was on the wire, and what was queued."""
        found = list(self.sent.values()), [*self._again, *self._queue]
        for table in (self.sent, self._again, self._queue):
            table.clear()
        return found

    def compose(self, entry: Entry) -> Frame:
        """Give a request its id and its frame, and return that."""
        entry.id = self.new_id()
        meta = frames.with_members(self.meta, entry.meta)
        if entry.progress:
            meta = frames.with_token(meta, entry.id)
        params = entry.params
        if entry.extra is not None:
            params = frames.with_extras(params, entry.extra)
        entry.frame = frames.request(entry.id, entry.method, params, meta)
        entry.frame.headers = entry.headers
        return entry.frame

    def _send(self, entry: Entry) -> Send:
        frame = self.compose(entry)
        assert entry.id is not None
        self.sent[entry.id] = entry
        entry.state = "sent"
        return Send(frame, entry)
