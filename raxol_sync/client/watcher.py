"""A session that keeps its subscriptions alive (row C31). Floor 3.

Theory of operation. ``_wishes`` says what is wanted. One thread, the *keeper*, brings the server in
line with it whenever something has changed: a wish came or went, a session is ready, a listen has
ended. So nothing of it can race, and a reconnection needs no code of its own.

1. A modern server has one listen for all wishes. To change it, a new one is opened, and the old one
   is cancelled once the new one is acknowledged: no change is missed in between. Wishes are added
   one at a time, so that one that is refused harms no other.
2. A legacy server is sent ``resources/subscribe`` for each URI, and again in each session. Changes
   of lists come by themselves, where there is a stream for them.
3. A listen that ends while the session goes on is opened again, after 1, 2, 4 ... 60 s.
"""

from __future__ import annotations

import logging
import operator
import threading
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

from raxol_sync._deadline import Deadline, now
from raxol_sync.client.backoff import Backoff
from raxol_sync.client.effects import Deliver, Entry, Settle
from raxol_sync.client.handlers import ThreadPool
from raxol_sync.client.link import Link, check_process
from raxol_sync.client.results import fresh
from raxol_sync.client.session import HANDLER_TIME, Session
from raxol_sync.client.signals import Signal
from raxol_sync.client.subscription import (
    KINDS,
    UPDATED,
    ClientSubscription,
    Filter,
    Told,
    agreed,
    kind_of,
)
from raxol_sync.client.unsendable import encode_params
from raxol_sync.errors import (
    METHOD_NOT_FOUND,
    Busy,
    InvalidResponse,
    MCPError,
    NotReady,
    RequestTimeout,
    RPCError,
)
from raxol_sync.protocol.wire import Incoming

_log = logging.getLogger("raxol_sync.client")

MAX_SUBSCRIPTIONS = 1024  # resources and lists that one client watches
WATCH_TIME = 30.0  # seconds for a server to take what it is asked again after a reconnection
_LISTEN = "subscriptions/listen"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class ListenToken:
    """What waits for a listen: for its acknowledgement, then for its end. See ``effects.Token``."""

    nested = True  # its end waits for no handler
    progress = None

    def __init__(self, wanted: Filter, on_end: Callable[[ListenToken], object]) -> None:
        self.wanted = wanted
        self.agreed: Filter | None = None
        self.entry: Entry | None = None
        self.error: BaseException | None = None
        self.ended = False
        self.news = threading.Event()  # acknowledged, ended, or perhaps nobody waits any more
        self._on_end = on_end

    def acknowledge(self, params: Mapping[str, Any]) -> None:
        """Note what the server agrees to; only the first time counts."""
        if self.agreed is None:
            self.agreed = agreed(params).common(self.wanted)
            self.news.set()

    def store(self, result: dict[str, Any] | None, error: BaseException | None) -> None:
        """Keep why it has ended."""
        self.error, self.ended = error, True

    def release(self) -> None:
        """It has ended."""
        self.ended = True
        self.news.set()
        self._on_end(self)


class Watcher(Session):
    """A session and what is watched in it. Thread-safe; used once."""

    def __init__(self, name: str, *others: Any, reconnect_delay: float = 1.0, **more: Any) -> None:
        """As ``Session``."""
        super().__init__(name, *others, reconnect_delay=reconnect_delay, **more)
        self._keeper = ThreadPool(f"raxol-sync-{name}-listen", 1)
        # Guards: _wishes, _current, _opening, _queued. Leaf.
        self._watching = threading.Lock()
        self._wishes: dict[ClientSubscription, None] = {}  # in their order
        self._current: ListenToken | None = None  # acknowledged; of a modern server
        self._opening: ListenToken | None = None  # waits for its acknowledgement
        self._queued = False  # the keeper will look
        # The keeper's own:
        self._asked: set[str] = set()  # URIs that the legacy server knows of
        self._asked_in = 0  # ... in this session
        self._again = Backoff(reconnect_delay, self._closing)

    # ------------------------------------------------------------ for the client

    def watch(
        self, wanted: Filter, callback: Told | None, deadline: Deadline
    ) -> ClientSubscription:
        """Have the server tell of changes, and wait until it has agreed.

        Raises:
            NotReady, ConnectFailed: there is no session.
            Busy: the client watches as much as it may.
            RequestTimeout: the server did not agree in time.
            RPCError: it does not offer this, or refuses it.
        """
        wish = ClientSubscription(
            wanted, callback, on_close=self._unwatch, is_active=self._is_active
        )
        wish.deadline = deadline
        check_process(self._process)
        encode_params(wanted.params())  # raises here what could not be sent
        self.require_ready()
        with self._watching:
            known = sum(len(one.wanted.uris) + len(one.wanted.kinds) for one in self._wishes)
            full = known + len(wanted.uris) + len(wanted.kinds) > MAX_SUBSCRIPTIONS
            if not full:
                self._wishes[wish] = None
        if full:
            raise Busy("subscriptions", MAX_SUBSCRIPTIONS)
        kept, nested = False, self._delivery.is_current()
        self._nested += nested
        try:
            self._wake()
            kept = wish.wait(deadline)
        finally:
            self._nested -= nested
            if not kept:  # refused, too late, or an interrupt
                wish.close()
                self._unwatch(wish)
        if not kept:
            method = _LISTEN if self.era == "modern" else "resources/subscribe"
            raise RequestTimeout(method, deadline.seconds)
        return wish

    def _unwatch(self, wish: ClientSubscription) -> None:
        with self._watching:
            known = wish in self._wishes
            self._wishes.pop(wish, None)
            opening = self._opening
        if opening is not None:
            opening.news.set()
        if known:
            self._wake()

    def _is_active(self, wish: ClientSubscription) -> bool:
        if self._machine.state != "ready" or wish.granted.empty:
            return False
        current = self._current
        if self._machine.era == "modern":
            return current is not None and not current.ended
        return self._asked_in == self._machine.sessions and wish.uris <= set(self._asked)

    # ------------------------------------------------------------ when something has changed

    def _wake(self) -> None:
        """Have the keeper look, soon. Never blocks."""
        with self._watching:
            if self._queued or not (self._wishes or self._current or self._asked):
                return
            self._queued = True
        if not self._keeper.post(self._keep):
            self._queued = False
            self._refuse_waiting(NotReady("closed", detail="the client was stopped"))

    def _on_ready(self) -> None:
        self._wake()

    def _receive(self, link: Link, message: Incoming | Signal) -> None:
        before = self._machine.sessions
        super()._receive(link, message)
        if self._machine.sessions != before:  # also where the supervisor would not notice it
            self._wake()

    def _behind_itself(self) -> bool:
        # What the keeper waits for may be waited for by a handler.
        return self._keeper.is_current() or super()._behind_itself()

    def _end(self, deadline: Deadline) -> None:
        self._refuse_waiting(NotReady("closed", detail="the client was stopped"))
        super()._end(deadline)
        self._keeper.close(Deadline(deadline.at_most(HANDLER_TIME)))

    def _refuse_waiting(self, error: MCPError) -> None:
        with self._watching:
            waiting = [wish for wish in self._wishes if wish.state == "waiting"]
        for wish in waiting:
            wish.settle(Filter(), fresh(error))

    # ------------------------------------------------------------ the keeper

    def _keep(self) -> None:
        """Bring the server in line with what is wanted; on the keeper's thread."""
        self._queued = False
        while not self._stopping:
            if self._machine.state != "ready":
                self._refuse_waiting(self._not_usable())
                return  # once there is a session again, it is called again
            with self._watching:
                waiting = next((wish for wish in self._wishes if wish.state == "waiting"), None)
                kept = [wish for wish in self._wishes if wish.state == "kept"]
            wishes = kept if waiting is None else [*kept, waiting]
            whole = reduce(operator.or_, [wish.wanted for wish in wishes], Filter())
            modern = self._machine.era == "modern"
            problem = (self._keep_listen if modern else self._keep_asked)(whole, waiting)
            if waiting is not None:
                self._grant(waiting, problem)
                continue
            if problem is not None:
                self._later(problem)
                return
            for wish in kept:
                wish.granted = wish.wanted.common(self._offered())
            return
        self._refuse_waiting(NotReady("closed", detail="the client was stopped"))

    def _grant(self, wish: ClientSubscription, problem: MCPError | None) -> None:
        """Say to a wish what came of it."""
        granted = Filter()
        if problem is None:
            granted = wish.wanted.common(self._offered())
            if granted.empty:
                words = ", ".join(sorted(wish.wanted.kinds)) or "single resources"
                problem = RPCError(
                    METHOD_NOT_FOUND, f"the server does not offer to tell of changes of {words}"
                )
        wish.settle(granted, problem)

    def _offered(self) -> Filter:
        """Return what the server has agreed to tell of."""
        current = self._current
        if self._machine.era == "modern":
            return Filter() if current is None or current.agreed is None else current.agreed
        found = self._machine.agreement
        declared = found.capabilities if found is not None else {}
        kinds = {kind for kind in KINDS if _flag(declared, kind, "listChanged")}
        return Filter(frozenset(kinds), frozenset(self._asked))

    def _later(self, problem: MCPError) -> None:
        """Try again after a while."""
        delay = self._again.next_delay()
        self._again.attempts += 1
        _log.debug("! %s: subscriptions: %s; again in %g s", self._name, problem, delay)
        self._scheduler.at(now() + delay, self._wake)

    # ------------------------------------------------------------ modern

    def _keep_listen(self, wanted: Filter, waiting: ClientSubscription | None) -> MCPError | None:
        """Have a listen for just what is wanted; return why there is none."""
        current = self._current
        if current is not None and current.ended:
            current = self._current = None
        if current is not None and current.wanted == wanted:
            return None
        if wanted.empty:
            self._drop(current)
            return None
        token = ListenToken(wanted, self._listen_ended)
        token.entry = Entry(_LISTEN, encode_params(wanted.params()), token)
        deadline = Deadline(WATCH_TIME) if waiting is None else waiting.deadline
        try:
            self._await_agreement(token, deadline, waiting)
        except MCPError as error:
            return error
        if token.agreed is not None and not token.ended:
            if current is None:
                self._distrust_lists(wanted)
            self._drop(current)
            self._again.reset()
            return None
        self._abandon(token.entry, "not acknowledged")
        with self._watching:
            if self._current is token:  # acknowledged in this very moment, and too late
                self._current = current
        if isinstance(token.error, MCPError):
            return fresh(token.error)
        if token.ended:
            return InvalidResponse(_LISTEN, "it ended before it was acknowledged")
        return RequestTimeout(_LISTEN, deadline.seconds)

    def _await_agreement(
        self, token: ListenToken, deadline: Deadline, waiting: ClientSubscription | None
    ) -> None:
        """Send a listen and wait for its acknowledgement, its end, or until nobody wants it."""
        assert token.entry is not None
        self._opening = token
        try:
            self._begin_listen(token.entry)
            while token.agreed is None and not token.ended and not deadline.expired():
                if waiting is not None and waiting.closed:
                    break
                token.news.wait(deadline.at_most(1.0))
                token.news.clear()
        finally:
            self._opening = None

    def _distrust_lists(self, wanted: Filter) -> None:
        """While nobody listened, lists may have changed: they are asked for anew."""
        if self._handlers.changed is not None:
            for kind in wanted.kinds:
                self._handlers.changed(f"notifications/{kind}/list_changed")

    def _begin_listen(self, entry: Entry) -> None:
        with self._lock:
            link = self._link if self._machine.state == "ready" else None
            if link is not None:
                effects = self._machine.listen(entry)
                self._put(link, effects)
        if link is None:
            raise self._not_usable()
        link.transport.flush(inline=True)
        if isinstance(effects[-1], Settle):  # the outbox had no room
            self._perform(link, effects, inline=True)

    def _drop(self, token: ListenToken | None) -> None:
        """End a listen that is not wanted any more."""
        with self._watching:
            if self._current is token:
                self._current = None
        if token is not None and token.entry is not None:
            token.ended = True
            self._abandon(token.entry, "no longer wanted")

    def _listen_ended(self, token: ListenToken) -> None:
        """A listen was answered, or lost. Called by whoever settles it."""
        with self._watching:
            if self._current is not token:
                return
        self._keeper.post(self._open_again)

    def _open_again(self) -> None:
        if self._machine.state == "ready":  # else the next session does it
            self._later(InvalidResponse(_LISTEN, "it has ended"))

    # ------------------------------------------------------------ legacy

    def _keep_asked(self, wanted: Filter, waiting: ClientSubscription | None) -> MCPError | None:
        """Have the server know the URIs that are wanted; return what did not work."""
        session = self._machine.sessions
        if self._asked_in != session:
            self._asked, self._asked_in = set(), session
        problem = None if wanted.empty else self._need_stream()
        mine = frozenset() if waiting is None else waiting.wanted.uris
        missing = wanted.uris - self._asked
        if missing and problem is None and not self._tells_of_resources():
            problem = RPCError(
                METHOD_NOT_FOUND, "the server does not offer to tell of changes of single resources"
            )
        deadline = Deadline(WATCH_TIME) if waiting is None else waiting.deadline
        others: MCPError | None = None
        for uri in sorted(missing) if problem is None else ():
            try:
                self.request("resources/subscribe", {"uri": uri}, deadline)
                self._asked.add(uri)
            except MCPError as error:
                if uri in mine:
                    problem = error
                    break
                others = error
        self._forget(self._asked - wanted.uris)
        if problem is None and others is None:
            self._again.reset()
        if waiting is None:
            return problem or others
        if others is not None:
            self._later(others)
        return problem

    def _forget(self, uris: set[str]) -> None:
        """Have the server forget URIs; whether it likes that is its own affair."""
        for uri in sorted(uris):
            self._asked.discard(uri)
            try:
                self.request("resources/unsubscribe", {"uri": uri}, Deadline(WATCH_TIME))
            except MCPError as error:
                _log.debug("! %s: resources/unsubscribe: %s", self._name, error)

    def _tells_of_resources(self) -> bool:
        found = self._machine.agreement
        return found is not None and _flag(found.capabilities, "resources", "subscribe")

    def _need_stream(self) -> MCPError | None:
        """See to it that what the server says unasked can come; return why it cannot."""
        link = self._link
        if self._machine.streaming or link is None:
            return None
        opened = link.transport.open_stream()
        if not opened:
            return RPCError(METHOD_NOT_FOUND, "the server has no stream for what it says unasked")
        with self._lock:
            self._machine.streaming = True
        return None

    # ------------------------------------------------------------ what the server says

    def _deliver(self, note: Deliver) -> None:
        super()._deliver(note)
        token: Any = None if note.entry is None else note.entry.token
        token = token if isinstance(token, ListenToken) else None
        if note.method == _ACKNOWLEDGED and token is not None:
            token.acknowledge(note.params)
            with self._watching:
                if not token.ended and token is self._opening:
                    self._current = token
            return
        kind, given = kind_of(note.method), note.params.get("uri")
        uri = given if note.method == UPDATED and isinstance(given, str) else None
        if kind is None and uri is None:
            return
        with self._watching:
            if self._machine.era == "modern" and token is not self._current:
                return  # of a listen that was replaced; the new one says it too
            told = [wish for wish in self._wishes if wish.wants(kind, uri)]
        for wish in told:
            self._post(partial(wish.tell, kind or uri or ""))


def _flag(capabilities: Mapping[str, Any], name: str, flag: str) -> bool:
    found = capabilities.get(name)
    return isinstance(found, dict) and found.get(flag) is True
