"""The older HTTP+SSE transport, of revision 2024-11-05 (row C22). Floor 3.

Spec: 2024-11-05 basic/transports. All that the server says comes on one stream (GET); its first
event names where messages are to be posted. Until it has come, frames wait.
"""

from __future__ import annotations

from functools import partial

from raxol_sync.client.handle import Handle, WebError
from raxol_sync.client.http_base import ACCEPT, HttpBase, Job, as_error
from raxol_sync.client.signals import Opened
from raxol_sync.client.targets import HttpTarget, message_endpoint
from raxol_sync.client.transport import OnLost, OnMessage
from raxol_sync.errors import ConnectFailed, ConnectionLost, MCPError
from raxol_sync.protocol.wire import Response

_EVENTS = "text/event-stream"


class SseTransport(HttpBase):
    """A ``Transport`` over HTTP+SSE. Thread-safe."""

    _answers_on_post = False
    _endpoint: HttpTarget | None = None
    _version: str | None = None

    def start(self, on_message: OnMessage, on_lost: OnLost) -> None:
        """Open the stream on a thread of its own; frames wait for its first event."""
        self._on_report, self._on_lost = on_message, on_lost
        handle = Handle()
        with self._lock:
            self._handles.add(handle)
        if not self._streams.post(partial(self._listen, handle)):
            raise ConnectFailed("no thread can be started for the stream")

    def flush(self, *, inline: bool) -> None:
        """Hand what is queued to its threads, once it is known where it goes."""
        if self._endpoint is not None:
            super().flush(inline=inline)

    def open_stream(self) -> bool:
        """There always is one; see ``Transport.open_stream``."""
        return True

    def _closing_cancels(self) -> bool:
        return False

    def _perform(self, job: Job) -> None:
        assert self._endpoint is not None  # flush sees to it
        headers = {**ACCEPT}
        if self._version is not None:
            headers["MCP-Protocol-Version"] = self._version
        answer = self._exchange(job, self._endpoint, headers)
        if answer.status >= 400:
            answer.close()
            raise self._refusal(answer.status)
        answer.drain()  # what it says is not looked at
        if job.frame.method == "notifications/initialized":
            self._report(Opened(True))

    def _listen(self, handle: Handle) -> None:
        """Read the stream to its end, which is the connection's; a stream's thread."""
        problem: MCPError = ConnectionLost("the server ended the stream")
        try:
            self._read(handle)
        except (WebError, MCPError) as error:
            problem = as_error(error, self._plan.target.where)
        with self._lock:
            self._handles.discard(handle)
            closed = self._closed
        if not closed:
            self._on_lost(problem)

    def _read(self, handle: Handle) -> None:
        answer = self._web.send(handle, "GET", self._plan.target, {"Accept": _EVENTS})
        if answer.status != 200 or answer.kind != _EVENTS:
            answer.close()
            if answer.status != 200:
                raise self._refusal(answer.status)
            raise ConnectFailed("the server offers neither Streamable HTTP nor HTTP+SSE")
        try:
            for event in self._events(answer, endless=True):
                if event.data is None:
                    continue
                if event.kind == "endpoint" and self._endpoint is None:
                    self._endpoint = message_endpoint(self._plan.target, event.data)
                    self.flush(inline=False)
                elif event.kind == "message":
                    self._hand_over(event.data)
        finally:
            answer.close()

    def _hand_over(self, data: str) -> None:
        for message in self._parse(data.encode("utf-8")):
            if self._version is None and isinstance(message, Response) and message.result:
                version = message.result.get("protocolVersion")
                self._version = version if isinstance(version, str) else None
            self._report(message)
