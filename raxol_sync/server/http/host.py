"""What a WSGI host may offer beyond PEP 3333, under ``HOST_KEY`` in the environ. Floor 1; pure.

The embedded server offers it; under other servers the key is missing and the application falls back
to what they have (see ``presence``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

HOST_KEY = "raxol_sync.host"


class Host(Protocol):
    """One request's host. Its methods are the request's thread's, but for ``end_stream``."""

    def begin_stream(self) -> bool:
        """Take one of the event-stream places for this response.

        ``False``: all are taken; the application answers 503 with Retry-After. The host gives the
        place back when the response's iterable has been closed, if ``end_stream`` has not.
        """

    def end_stream(self) -> None:
        """Give the place back now: what is yielded next is the last of this response.

        The host may write that together with the end of the response, so that a client which has
        it finds the place free. Twice is harmless; from any thread.
        """

    def watch(self, on_gone: Callable[[], object]) -> None:
        """Have ``on_gone()`` called once when the client has closed its connection.

        Also when the host stops. Quickly and on any thread; at once, if it is gone already. Never
        after the response has ended.
        """
