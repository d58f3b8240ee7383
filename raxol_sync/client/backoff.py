"""How long to wait before the next attempt to connect (row C15). Floor 2.

The only importer of ``tenacity``, which says how long each wait is and waits on an event, so that
``stop()`` ends the wait at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

LONGEST = 60.0  # seconds


class Backoff:
    """Delays that double: 1, 2, 4 ... 60 s. For one thread; ``closing`` may be set by any.

    Attributes:
        attempts: how many waits there were since the last ``reset``.
    """

    def __init__(
        self,
        first: float,
        closing: threading.Event,
        *,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Say where to begin.

        Args:
            first: the first delay, in seconds.
            closing: set when nobody wants the next attempt any more.
            sleep: waits that long, or until ``closing`` is set; tests pass their own.
        """
        self._first = first
        self._closing = closing
        self._longest = max(LONGEST, first)
        self._sleep = sleep
        self.attempts = 0

    def reset(self) -> None:
        """The connection has proved itself: the next delay is the first one again."""
        self.attempts = 0

    def next_delay(self) -> float:
        """Return how long the next ``wait`` takes, in seconds."""
        from tenacity import RetryCallState, Retrying, wait_exponential

        state = RetryCallState(Retrying(), None, (), {})
        # An exponent past 60 would only build large numbers: the result is the longest delay.
        state.attempt_number = min(self.attempts + 1, 60)
        return float(wait_exponential(multiplier=self._first, max=self._longest)(state))

    def wait(self) -> bool:
        """Wait for the next attempt; return whether it shall be made."""
        from tenacity.nap import sleep_using_event

        delay = self.next_delay()
        self.attempts += 1
        if not self._closing.is_set():
            (self._sleep or sleep_using_event(self._closing))(delay)
        return not self._closing.is_set()
