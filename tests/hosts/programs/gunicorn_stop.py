"""A configuration for gunicorn: a worker that is told to stop ends its event streams first."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

graceful_timeout = 10
READY = "a worker is ready"


def post_worker_init(worker: Any) -> None:
    """Put ourselves before gunicorn's own handler of SIGTERM."""
    theirs: Any = signal.getsignal(signal.SIGTERM)

    def stop(number: int, frame: FrameType | None) -> None:
        # A signal handler may interrupt anything, so the work is another thread's.
        threading.Thread(target=worker.wsgi.close).start()
        theirs(number, frame)

    signal.signal(signal.SIGTERM, stop)
    print(READY, flush=True)
