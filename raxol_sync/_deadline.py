"""One deadline for a whole operation, on the monotonic clock. Floor 0.

A public call makes one ``Deadline`` at its entry and hands it down; each step waits for what is
left. Waits are clamped at zero, because a negative time-out waits for ever in some primitives of
``threading`` and raises in others.
"""

from __future__ import annotations

import enum
import time

_LONGEST = 4e6  # seconds; 46 days: the waits of Windows accept no more than 49


class Default(enum.Enum):
    """The type of ``DEFAULT``, so that type checkers can tell it from every other value."""

    DEFAULT = "DEFAULT"

    __hash__ = object.__hash__  # it is the key of many look-ups; Enum's own is written in Python

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT = Default.DEFAULT
"""As a time-out: the client's default. As a ``conn_id``: the implicit connection (row S19)."""


def now() -> float:
    """Return the monotonic clock, in seconds. Called by name, so that tests can replace it."""
    return time.monotonic()


class Deadline:
    """A moment on the monotonic clock, or never. Immutable and thread-safe."""

    __slots__ = ("_at", "seconds")

    def __init__(self, seconds: float | None) -> None:
        """Start a deadline ``seconds`` from now; ``None`` is never."""
        self.seconds = seconds
        self._at = None if seconds is None else now() + seconds

    @property
    def at(self) -> float | None:
        """The moment, on the clock of ``now()``; ``None`` is never."""
        return self._at

    def left(self) -> float | None:
        """Return the seconds that are left, at least 0, or ``None`` for no limit."""
        if self._at is None:
            return None
        return min(max(0.0, self._at - now()), _LONGEST)

    def expired(self) -> bool:
        """Return whether the moment has passed."""
        return self._at is not None and now() >= self._at

    def at_most(self, seconds: float) -> float:
        """Return the seconds that are left, but no more than ``seconds``."""
        left = self.left()
        return seconds if left is None else min(left, seconds)


def check_seconds(name: str, value: object) -> float | None:
    """Return ``value`` as seconds: a number of at least 0, or ``None`` for no limit.

    Infinity is no limit too; what is longer than 46 days becomes that.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative or NaN.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds or None, not {type(value).__name__}")
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0 seconds, or None for no limit")
    # Clamped before it is converted: an int may be too large for a float.
    return None if value == float("inf") else float(min(value, _LONGEST))


def check_count(name: str, value: object, *, least: int = 1) -> int:
    """Return ``value`` as a whole number of at least ``least``.

    Raises:
        TypeError: it is no ``int``.
        ValueError: it is smaller.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return value
