"""A session's connection, and what becomes of requests when it ends. Floor 3."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from raxol_sync.client.effects import Entry
from raxol_sync.client.metering import Holding
from raxol_sync.client.results import fresh
from raxol_sync.client.transport import Transport
from raxol_sync.client.verdicts import FailedForGood
from raxol_sync.errors import BreakerOpen, Busy, ConnectFailed, NotReady, ServerExited

_log = logging.getLogger("raxol_sync.client")

MAX_WORDS = 500  # characters of a failure that are logged


class Link:
    """One connection of a session. What an older one still says is ignored."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.restart: str | None = None  # it is over: connect anew at once, and begin like this


class Herald:
    """Logs why there is no session, once until the reason is another (row C15). For one thread."""

    def __init__(self, name: str, where: str) -> None:
        """``name``: the client's; ``where``: host and port of its server, if it has them."""
        self._name = name
        self._where = where
        self._told = ""  # since a session was ready

    def located(self, words: str) -> str:
        """Return words with host and port in front, where they are not in them."""
        return words if self._where in words else f"{self._where}: {words}"

    def failed(self, error: BaseException | None) -> None:
        """Take a failure after which the client connects again."""
        if isinstance(error, ServerExited):
            # What it wrote to stderr is not ours to log.
            error = ServerExited(error.code, hint=error.hint)
        words = self.located(str(error))[:MAX_WORDS]
        words = "".join(char if char.isprintable() else " " for char in words)  # a peer's, in part
        if words != self._told:
            self._told = words
            _log.warning("! %s: %s; trying again until stop()", self._name, words)

    def ready(self) -> None:
        """There is a session: the next failure is news."""
        self._told = ""


def check_process(process: int) -> None:
    """Refuse to work in a child of ``os.fork``: threads and connections are its parent's.

    Called before any lock is taken, as that may never be free there. ``process``: the parent's id.
    """
    if os.getpid() != process:
        detail = "it was made before os.fork(); make a client of its own in each process"
        raise NotReady("closed", detail=detail)


def as_connect_failed(error: BaseException) -> ConnectFailed:
    """Return why there is no session, as an exception of the caller's own."""
    if isinstance(error, FailedForGood):
        failed, cause = ConnectFailed(error.reason), error.__cause__
    elif isinstance(error, ConnectFailed):
        return fresh(error)
    else:
        failed, cause = ConnectFailed(str(error)), error
    failed.__cause__ = cause
    return failed


def settle_holding(holding: Holding, entry: Entry, error: BaseException | None) -> None:
    """Spend what pays for a request, or give it back where the transport did not get it (C25)."""
    if entry.id is None or isinstance(error, (Busy, NotReady, BreakerOpen)):
        holding.give_back()
    else:
        holding.spend()


def pay(holding: Holding, entry: Entry, error: BaseException | None) -> None:
    """As ``settle_holding``, for a future that is about to be settled. Never raises."""
    try:
        settle_holding(holding, entry, error)
    except Exception:  # a ledger's own: the future is settled all the same
        _log.exception("! a reservation could not be settled")


def run(action: Callable[[], object]) -> None:
    """Run an action at once: for deadlines that settle and run no user code."""
    action()
