"""Who waits for sockets: ``select.epoll`` on Linux, ``selectors`` elsewhere. Floor 2.

A socket is *armed* for one event at a time: readable, writable, or that its client has gone. The
event disarms it. ``arm`` may be called from any thread, ``wait`` from the poller's own only.

What "gone" can be told by: epoll reports that the client has closed its side (RDHUP), also behind
bytes that nobody has read. ``selectors`` reports only that something can be read, and one looks at
what; behind a pipelined request, or in TLS, a client's end is then seen at the next write.
"""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
import threading
import time
from typing import Protocol

_DONTWAIT = getattr(socket, "MSG_DONTWAIT", 0)
_NOTHING, READ, WRITE, GONE = 0, 1, 2, 4
"""What a socket is armed for, and what has happened to it."""


class Poller(Protocol):
    """Waits for many sockets, known by their descriptors."""

    def add(self, sock: socket.socket, *, listens: bool = False) -> None:
        """Know a socket. One that listens is armed for good; others not yet."""

    def arm(self, sock: socket.socket, event: int) -> None:
        """Report ``event`` once. A socket that was closed meanwhile is ignored."""

    def remove(self, sock: socket.socket) -> None:
        """Forget a socket, before it is closed."""

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        """Return (descriptor, event) for all that happened; empty after the time or a ``wake``."""

    def wake(self) -> None:
        """Let ``wait`` return."""

    def close(self) -> None:
        """Give the descriptors back."""


class _Bell:
    """A pair of sockets: a byte in one makes the other readable. Thread-safe."""

    def __init__(self) -> None:
        self.ear, self._hand = socket.socketpair()
        self.ear.setblocking(False)
        self._hand.setblocking(False)

    def ring(self) -> None:
        with contextlib.suppress(OSError):  # full: it rings already; or closed
            self._hand.send(b"\0")

    def hush(self) -> None:
        with contextlib.suppress(OSError):
            while self.ear.recv(4096):
                continue

    def close(self) -> None:
        self.ear.close()
        self._hand.close()


class EpollPoller:
    """By epoll: arming is one system call, from any thread, and wakes nobody."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._bell = _Bell()
        self._epoll.register(self._bell.ear, select.EPOLLIN)
        self._masks = {
            READ: select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLONESHOT,
            WRITE: select.EPOLLOUT | select.EPOLLONESHOT,
            GONE: select.EPOLLRDHUP | select.EPOLLONESHOT,
        }

    def add(self, sock: socket.socket, *, listens: bool = False) -> None:
        """As ``Poller.add``."""
        self._epoll.register(sock, select.EPOLLIN if listens else select.EPOLLONESHOT)

    def arm(self, sock: socket.socket, event: int) -> None:
        """As ``Poller.arm``."""
        with contextlib.suppress(OSError, ValueError):
            self._epoll.modify(sock, self._masks[event])

    def remove(self, sock: socket.socket) -> None:
        """As ``Poller.remove``."""
        with contextlib.suppress(OSError, ValueError):
            self._epoll.unregister(sock)

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        """As ``Poller.wait``."""
        found = []
        ear = self._bell.ear.fileno()
        for descriptor, mask in self._epoll.poll(seconds):
            if descriptor == ear:
                self._bell.hush()
                continue
            event = READ if mask & select.EPOLLIN else 0
            event |= WRITE if mask & select.EPOLLOUT else 0
            if mask & (select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR):
                event |= GONE
            found.append((descriptor, event))
        return found

    def wake(self) -> None:
        """As ``Poller.wake``."""
        self._bell.ring()

    def close(self) -> None:
        """As ``Poller.close``."""
        self._epoll.close()
        self._bell.close()


class SelectorPoller:
    """By ``selectors``, which only one thread may use: others leave word and ring a bell."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        self._selector = selector if selector is not None else selectors.DefaultSelector()
        self._bell = _Bell()
        self._selector.register(self._bell.ear, selectors.EVENT_READ)
        self._listening: set[int] = set()
        self._armed: dict[int, int] = {}  # of the thread alone that waits

        # Guards: _words. Leaf.
        self._lock = threading.Lock()
        self._words: list[tuple[socket.socket, int]] = []

    def add(self, sock: socket.socket, *, listens: bool = False) -> None:
        """As ``Poller.add``."""
        if listens:
            self._selector.register(sock, selectors.EVENT_READ)
            self._listening.add(sock.fileno())

    def arm(self, sock: socket.socket, event: int) -> None:
        """As ``Poller.arm``."""
        with self._lock:
            self._words.append((sock, event))
        self._bell.ring()

    def remove(self, sock: socket.socket) -> None:
        """As ``Poller.remove``."""
        if sock.fileno() in self._listening:
            self._listening.discard(sock.fileno())
            self._selector.unregister(sock)
        else:
            self.arm(sock, _NOTHING)

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        """As ``Poller.wait``."""
        self._heed()
        try:
            ready = self._selector.select(seconds)
        except OSError:  # a socket was closed meanwhile; its removal is among the next words
            return []
        found = []
        for key, mask in ready:
            if key.fd == self._bell.ear.fileno():
                self._bell.hush()
            elif key.fd in self._listening:
                found.append((key.fd, READ))
            elif isinstance(key.fileobj, socket.socket):
                event = self._event(key.fileobj, self._armed.pop(key.fd, _NOTHING), mask)
                self._disarm(key.fileobj)
                if event:
                    found.append((key.fd, event))
        return found

    def _event(self, sock: socket.socket, armed: int, mask: int) -> int:
        if armed != GONE:
            return armed
        try:
            return 0 if sock.recv(1, socket.MSG_PEEK | _DONTWAIT) else GONE
        except (BlockingIOError, InterruptedError):
            self.arm(sock, GONE)
            return 0
        except (OSError, ValueError):  # reset; or MSG_PEEK is not for TLS
            return GONE if mask else 0

    def _heed(self) -> None:
        """Do what others have asked for."""
        with self._lock:
            words, self._words = self._words, []
        for sock, event in words:
            self._disarm(sock)
            if event is _NOTHING:
                continue
            kind = selectors.EVENT_WRITE if event == WRITE else selectors.EVENT_READ
            with contextlib.suppress(KeyError, ValueError, OSError):  # closed meanwhile
                self._armed[self._selector.register(sock, kind).fd] = event

    def _disarm(self, sock: socket.socket) -> None:
        # A closed socket has no number any more; the selector then looks for the object.
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._armed.pop(self._selector.unregister(sock).fd, None)

    def wake(self) -> None:
        """As ``Poller.wake``."""
        self._bell.ring()

    def close(self) -> None:
        """As ``Poller.close``."""
        self._selector.close()
        self._bell.close()


def make_poller() -> Poller:
    """Return the best one that this system has."""
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()


def await_ready(sock: socket.socket, *, write: bool, seconds: float) -> bool:
    """Wait in the calling thread until a socket is ready, or closed; return whether it is."""
    seconds = max(0.0, seconds)
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLOUT if write else select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    end = time.monotonic() + seconds
    wanted = [sock]
    while True:  # Windows: select.select, which takes sockets of any number there
        left = max(0.0, end - time.monotonic())
        ready = select.select([] if write else wanted, wanted if write else [], wanted, left)
        if any(ready) or left <= 0:
            return any(ready)
