"""Waiting for what no event tells of, such as a thread's very end, or a count in another object."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until something is true; fail if it is not in time."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        pause.wait(0.002)
