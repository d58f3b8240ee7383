"""A session that tells what it does, if anybody listens. Floor 3.

The events are those of ``telemetry.CLIENT_EVENTS``. No argument, result, header or URL is in any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from raxol_sync._deadline import Deadline, now
from raxol_sync._delivery import DeliveredFuture
from raxol_sync.breaker import State
from raxol_sync.client.calls import PLAIN, Extras, Progress
from raxol_sync.client.watcher import Watcher
from raxol_sync.errors import RequestTimeout, RPCError
from raxol_sync.telemetry import Telemetry

T = TypeVar("T")
Json = dict[str, Any]
_BREAKER = {
    "open": "breaker_opened",
    "half_open": "breaker_half_opened",
    "closed": "breaker_closed",
}


class _Report:
    """The events of one request."""

    __slots__ = ("_begun", "_method", "_name", "_telemetry")

    def __init__(self, telemetry: Telemetry, name: str, method: str) -> None:
        self._telemetry = telemetry
        self._name = name
        self._method = method
        self._begun = now()
        telemetry.emit("request_started", name=name, method=method)

    def _tell(self, event: str, **more: Any) -> None:
        seconds = now() - self._begun
        self._telemetry.emit(event, name=self._name, method=self._method, seconds=seconds, **more)

    def finished(self, *, is_error: bool) -> None:
        """There is a result."""
        self._tell("request_finished", **({"is_error": True} if is_error else {}))

    def failed(self, error: BaseException) -> None:
        """There is none."""
        if isinstance(error, (KeyboardInterrupt, CancelledError)):
            self._tell("request_cancelled")
        elif isinstance(error, RequestTimeout):
            self._tell("request_timed_out")
        else:
            code = {"code": error.code} if isinstance(error, RPCError) else {}
            self._tell("request_failed", error=type(error).__name__, **code)

    def settled(self, future: Future[Any]) -> None:
        """As these, for a future."""
        if future.cancelled():
            self._tell("request_cancelled")
        elif (error := future.exception()) is not None:
            self.failed(error)
        else:
            self.finished(is_error=getattr(future.result(), "is_error", False) is True)


class Reporter(Watcher):
    """A session that reports its requests, reconnections and breaker. Thread-safe; used once."""

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        deadline: Deadline,
        *,
        progress: Progress | None = None,
        extras: Extras = PLAIN,
    ) -> Json:
        """See ``Exchange.request``."""
        make = super().request
        if not self._telemetry.on:
            return make(method, params, deadline, progress=progress, extras=extras)
        report = _Report(self._telemetry, self._name, method)
        try:
            result = make(method, params, deadline, progress=progress, extras=extras)
        except BaseException as error:  # an interrupt too: what began is reported as ended
            report.failed(error)
            raise
        report.finished(is_error=result.get("isError") is True)
        return result

    def submit(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        deadline: Deadline,
        convert: Callable[[Json], T],
        *,
        progress: Progress | None = None,
        extras: Extras = PLAIN,
    ) -> DeliveredFuture[T]:
        """See ``Exchange.submit``."""
        make = super().submit
        if not self._telemetry.on:
            return make(method, params, deadline, convert, progress=progress, extras=extras)
        report = _Report(self._telemetry, self._name, method)
        try:
            future = make(method, params, deadline, convert, progress=progress, extras=extras)
        except BaseException as error:  # an interrupt too: what began is reported as ended
            report.failed(error)
            raise
        # Not the future's own method: that one takes the delivery thread, for users' callbacks.
        Future.add_done_callback(future, report.settled)
        return future

    def tell(self, event: str, **fields: Any) -> None:
        """Report something else. Never blocks and never raises."""
        self._telemetry.emit(event, name=self._name, **fields)

    def tell_breaker(self, origin: str, state: State) -> None:
        """Report that the breaker of an origin has changed."""
        self._telemetry.emit(_BREAKER[state], name=self._name, origin=origin)
