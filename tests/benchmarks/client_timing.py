"""What both client programs of the benchmark do with a connected client.

    client_*.py URL-or-server_raw.py MODE CALLS

MODE is `one` (one call after another) or `threads` (16 threads). Prints calls a second.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TEXT = "hello " * 10
THREADS = 16
WARM_UP = 30


def run(call: Callable[[], Any]) -> None:
    """Time `call` as the command line says."""
    mode, calls = sys.argv[2], int(sys.argv[3])

    def some(count: int) -> None:
        for _ in range(count):
            found = call().content[0].text
            if found != TEXT:
                raise RuntimeError(f"a wrong answer: {found!r}")

    some(WARM_UP)
    begun = time.perf_counter()
    if mode == "one":
        some(calls)
    else:
        with ThreadPoolExecutor(THREADS) as threads:
            for done in [threads.submit(some, calls // THREADS) for _ in range(THREADS)]:
                done.result()
    print(calls / (time.perf_counter() - begun))
