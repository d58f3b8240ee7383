"""What both HTTP transports share: threads, jobs, sockets, deadlines (rows C10, C12, C13). Floor 3.

Threads. Each request in flight has one, of a pool as large as the window (and a few, because a
thread that has its answer may still be reading the end of its stream). Answers to the server,
notifications and DELETE have a few of their own, so that they never wait behind requests; streams
have theirs. All are started when they are needed and joined by ``close``.

Order. Messages are handed to the session by one thread at a time, as by the one reader of a pipe.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from raxol_sync._deadline import Deadline, now
from raxol_sync._scheduler import Scheduler
from raxol_sync.breaker import Ticket
from raxol_sync.client.frames import Frame
from raxol_sync.client.guard import Guard, How
from raxol_sync.client.handle import Handle, WebError
from raxol_sync.client.handlers import ThreadPool
from raxol_sync.client.incoming import parse
from raxol_sync.client.link import run
from raxol_sync.client.signals import Failed, Signal
from raxol_sync.client.sse import EventReader
from raxol_sync.client.targets import HttpTarget
from raxol_sync.client.transport import OnLost
from raxol_sync.client.verdicts import refusal, seconds_shown
from raxol_sync.client.web import Answer, Web, WebOptions
from raxol_sync.errors import (
    ConnectFailed,
    ConnectionLost,
    HTTPStatusError,
    MCPError,
    RedirectRefused,
)
from raxol_sync.protocol.wire import Incoming, Malformed

T = TypeVar("T")
_log = logging.getLogger("raxol_sync.client")

SIDE_THREADS = 8  # for what takes no place in the window
STREAM_THREADS = 3  # the stream in use, the one that replaces it, and one that is just ending
SPARE_THREADS = 4  # for requests whose stream has not ended although the answer has come
SIDE_TIME = 10.0  # seconds for a server to take a notification or an answer
CANCEL_TIME = 1.0  # ... or that nobody waits for a request any more
STREAM_FACTOR = 8  # a response's stream may hold so many messages of the largest size
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
FAULTS = frozenset({401, 403, 408, 429})  # and 5xx: what opens the breaker (row C24)
HANDSHAKE = frozenset({"initialize", "server/discover"})

REPEATABLE = frozenset(
    {
        *HANDSHAKE, "notifications/initialized", "ping", "logging/setLevel", "tools/list",
        "prompts/list", "resources/list", "resources/templates/list", "resources/subscribe",
        "resources/unsubscribe", "subscriptions/listen",
    }
)  # fmt: skip
"""What may reach a server twice without harm."""

OnReport = Callable[[Incoming | Signal], None]


class HttpPlan(NamedTuple):
    """Where to connect to and how; the same for all connections of a client.

    Attributes:
        target: the URL.
        options: how requests are made.
        guard: the origin's breaker (row C24).
    """

    target: HttpTarget
    options: WebOptions
    guard: Guard


class Job:
    """One frame on its way, the session that it belongs to, and what ends it."""

    __slots__ = ("frame", "handle", "session", "started")

    def __init__(self, frame: Frame, session: str | None) -> None:
        self.frame = frame
        self.session = session
        self.handle = Handle()
        self.started = False


class HttpBase:
    """Jobs and their threads. Thread-safe. A transport says what a job does: ``_perform``."""

    _answers_on_post = True  # a request whose POST is over has its outcome

    def __init__(
        self, plan: HttpPlan, name: str, *, window: int, max_bytes: int, max_frames: int
    ) -> None:
        """``window``: requests in flight; ``max_bytes``: of a message; ``max_frames``: waiting."""
        self._plan = plan
        self._name = name
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._session: str | None = None  # its id, of a legacy server that gives one
        self._web = Web(plan.target, plan.options)
        # Guards: _session, _queue, _doomed, _jobs, _handles, _closed and what a transport adds.
        # Leaf.
        self._lock = threading.Lock()
        self._queue: deque[Job] = deque()  # put, and not handed to a thread
        self._doomed: deque[Handle] = deque()  # to be ended by the next flush
        self._jobs: dict[Frame, Job] = {}
        self._handles: set[Handle] = set()  # of streams
        self._closed = False
        # The reader's turn: held while a message is handed to the session, which may wait for slow
        # handlers there, as it would with one reader thread.
        self._turn = threading.Lock()
        self._calls = ThreadPool(f"raxol-sync-{name}-http", window + SPARE_THREADS)
        self._side = ThreadPool(f"raxol-sync-{name}-side", SIDE_THREADS)
        self._streams = ThreadPool(f"raxol-sync-{name}-stream", STREAM_THREADS)
        self._scheduler = Scheduler(run, f"raxol-sync-{name}-http-timer")
        self._on_report: OnReport = lambda report: None
        self._on_lost: OnLost = lambda error: None

    # ------------------------------------------------------------ for the session

    def put(self, frame: Frame) -> bool:
        """Queue a frame; see ``Transport.put``."""
        with self._lock:
            if self._closed or len(self._jobs) >= self._max_frames:
                return False
            job = self._jobs[frame] = Job(frame, self._session)
            self._queue.append(job)
            return True

    def retract(self, frame: Frame) -> bool:
        """Take a frame back, or see to it that ``flush`` shuts its socket down.

        Return whether that says it all: else ``notifications/cancelled`` is sent as well.
        """
        with self._lock:
            job = self._jobs.get(frame)
            if job is None:
                return self._answers_on_post
            if not job.started:
                del self._jobs[frame]
                self._doomed.append(job.handle)
                return True
            self._doomed.append(job.handle)
            return self._closing_cancels() or not job.handle.reached

    def _closing_cancels(self) -> bool:
        """Whether a closed response tells the server that its request is cancelled."""
        raise NotImplementedError

    def flush(self, *, inline: bool) -> None:
        """End what was taken back and hand what is queued to its threads."""
        # Each stays in its queue until it is done with: an interrupt may end this at any moment,
        # and the next flush goes on. What two threads do at once changes nothing.
        # The doomed first: a serialized session has one request on the wire.
        self._empty(self._doomed, Handle.end)
        self._empty(self._queue, self._hand_to_thread)

    def _empty(self, waiting: deque[T], deal_with: Callable[[T], object]) -> None:
        while True:
            with self._lock:
                head = waiting[0] if waiting else None
            if head is None:
                return
            deal_with(head)
            with self._lock:
                if waiting and waiting[0] is head:
                    waiting.popleft()

    def _hand_to_thread(self, job: Job) -> None:
        frame = job.frame
        pool = self._side if frame.id is None else self._streams if frame.stream else self._calls
        if not pool.post(partial(self._run, job)) and not self._closed:
            # Not told here: this thread may have the reader's turn.
            error = ConnectFailed("no thread can be started for the request")
            self._side.post(partial(self._fail, job, error))

    def complaint(self) -> str:
        """What is no message fails its own request; see ``Transport.complaint``."""
        return ""

    def close(self, deadline: Deadline, *, lost: bool = False) -> None:
        """End every request and stream, join the threads, close the connections."""
        with self._lock:
            closed, self._closed = self._closed, True
            handles = [job.handle for job in self._jobs.values()]
        if closed:
            return
        for handle in handles:
            handle.end()
        if not lost:
            self._say_goodbye(deadline)
        with self._lock:
            handles = [*(job.handle for job in self._jobs.values()), *self._handles]
        for handle in handles:
            handle.end()
        ended = [pool.close(Deadline(2.0)) for pool in (self._calls, self._side, self._streams)]
        self._scheduler.close(deadline)
        self._web.close()
        if not all(ended):
            _log.warning("! %s: a thread has not ended in time; it ends by itself", self._name)

    def _say_goodbye(self, deadline: Deadline) -> None:
        """Tell the server that the session ends, if it has to be told."""

    # ------------------------------------------------------------ jobs

    def _run(self, job: Job) -> None:
        """Make one request; on a thread of a pool."""
        frame = job.frame
        with self._lock:
            if self._jobs.get(frame) is not job or job.started or self._closed:
                return
            job.started = True
        alarm = None
        try:
            if frame.id is None:
                cancels = frame.method == "notifications/cancelled"
                limit = CANCEL_TIME if cancels else SIDE_TIME
                alarm = self._scheduler.at(now() + limit, job.handle.end)
            self._perform(job)
        except (WebError, MCPError) as error:
            self._fail(job, as_error(error, self._plan.target.where))
        except Exception as error:  # the request must have an outcome, and the thread goes on
            _log.exception("! %s: a request over HTTP broke", self._name)
            self._fail(job, ConnectionLost(f"the client failed ({type(error).__name__})"))
        finally:
            if alarm is not None:
                self._scheduler.cancel(alarm)
            with self._lock:
                self._jobs.pop(frame, None)

    def _perform(self, job: Job) -> None:
        """Make the request and report what comes of it; may raise what ``_run`` catches."""
        raise NotImplementedError

    def _fail(self, job: Job, error: MCPError) -> None:
        if job.frame.id is not None:
            self._report(Failed(job.frame.id, error))
        elif not job.handle.ended:
            _log.debug("! %s: %s was not taken: %s", self._name, job.frame.method, error)

    def _report(self, report: Incoming | Signal) -> None:
        with self._turn:
            self._on_report(report)

    def _refusal(self, status: int, said: Mapping[str, Any] | None = None) -> HTTPStatusError:
        """Return a status as an exception; ``said``: the JSON-RPC error that came with it."""
        options = self._plan.options
        # What an auth object sends is not known here: a server that repeats it must not be told.
        told = said if options.auth is None else None
        return refusal(status, self._plan.target, options.headers, told)

    # ------------------------------------------------------------ one HTTP exchange

    def _exchange(self, job: Job, target: HttpTarget, headers: Mapping[str, str]) -> Answer:
        """Post a frame, with the breaker's leave, and return the response.

        Raises:
            BreakerOpen: nothing was sent.
            WebError: there was no response.
            RedirectRefused: the response is a redirect.
        """
        frame = job.frame
        asks = frame.id is not None and frame.method not in HANDSHAKE and not frame.stream
        ticket = self._plan.guard.admit() if asks else None
        how: How = "nothing"
        why, begun = "", now()
        try:
            answer = self._post(job, target, headers)
            how = "fault" if answer.status in FAULTS or answer.status >= 500 else "good"
            why = f"HTTP status {answer.status}"
        except WebError as error:
            late = job.handle.ended and frame.reason == "timed out"
            how = "nothing" if (job.handle.ended and not late) or error.refusal else "fault"
            why = f"no answer within {seconds_shown(now() - begun)} s" if late else error.reason
            raise
        finally:  # whatever else is raised: a probe's place must not be lost
            self._judge(ticket, how, why)
        if 300 <= answer.status < 400:
            answer.close()
            raise RedirectRefused(answer.status, _shown(answer.headers.get("Location", "")))
        return answer

    def _post(self, job: Job, target: HttpTarget, headers: Mapping[str, str]) -> Answer:
        """Post a frame, once more where its connection was just being closed and that is safe."""
        frame = job.frame
        try:
            return self._web.send(job.handle, "POST", target, headers, frame.data)
        except WebError as error:
            if not error.stale or frame.method not in REPEATABLE or job.handle.ended:
                raise
        return self._web.send(job.handle, "POST", target, headers, frame.data)

    def _judge(self, ticket: Ticket | None, how: How, why: str) -> None:
        guard = self._plan.guard
        if ticket is not None and guard.report(ticket, how, why):
            _log.debug("= %s: the breaker of %s: %s", self._name, guard.origin, guard.state())

    def _events(self, answer: Answer, *, endless: bool = False) -> EventReader:
        total = None if endless else STREAM_FACTOR * self._max_bytes
        return EventReader(answer.chunks(), max_event=self._max_bytes, max_total=total)

    def _parse(self, data: bytes) -> list[Incoming]:
        found = parse(data, max_bytes=self._max_bytes)
        for message in found:
            if isinstance(message, Malformed):
                _log.warning("< %s: cannot be read: %s", self._name, message.reason)
        return found


def as_error(error: WebError | MCPError, where: str) -> MCPError:
    """Return what a request without a response raises. ``where``: host and port."""
    if isinstance(error, MCPError):
        return error
    if error.refusal is not None:
        return error.refusal
    if error.connected:
        return ConnectionLost(error.reason)
    return ConnectFailed(f"{where}: {error.reason}")


def _shown(location: str) -> str:
    """Return a URL without userinfo, query and fragment, cut."""
    text = location.partition("#")[0].partition("?")[0][:200]
    scheme, slashes, rest = text.partition("//")
    host, slash, path = rest.partition("/")
    shown = f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}" if slashes else text
    return shown.encode("unicode_escape").decode("ascii")
