"""Listening sockets, and what can go wrong when they accept. Floor 2."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator

SCARCE = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
"""The system has no descriptor or no memory for another connection."""
_ABSENT = frozenset([errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])


def listen(host: str | None, port: int, backlog: int) -> list[socket.socket]:
    """Return sockets that listen at all addresses of ``host``; an empty one means all there are.

    Port 0 takes a free port, the same for all addresses.

    Raises:
        OSError: the host is unknown, or an address cannot be had, as when its port is taken.
    """
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            if port == 0 and sockets:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            try:
                sockets.append(_listen(family, address, backlog))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                failed = error  # a name of two addresses, on a machine without IPv6
        if not sockets:
            raise failed or OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _listen(family: int, address: object, backlog: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "nt":  # there SO_REUSEADDR would let another program take the port over
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", 0), 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)  # type: ignore[arg-type]
        sock.setblocking(False)
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock


def accepted(listener: socket.socket, most: int) -> Iterator[tuple[socket.socket, str, int]]:
    """Yield the connections that wait, at most so many: socket, the client's address and port.

    Raises:
        OSError: one of ``SCARCE``; all else ends the turn.
    """
    for _ in range(most):
        try:
            sock, address = listener.accept()
        except OSError as error:
            if error.errno in SCARCE:
                raise
            return  # none is left, or a client gave up while it waited
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # it is gone already
            sock.close()
            continue
        yield sock, str(address[0]), int(address[1])
