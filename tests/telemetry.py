"""What the tests of telemetry share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tests.waiting import wait_until


class Heard:
    """A telemetry callable that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.threads: set[str] = set()

    def __call__(self, event: str, fields: Mapping[str, Any]) -> None:
        self.threads.add(threading.current_thread().name)
        self.events.append((event, dict(fields)))

    def names(self, *wanted: str) -> list[str]:
        """The names in order; of these events only, if any are given."""
        return [name for name, _ in self.events if not wanted or name in wanted]

    def of(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """The fields of all events of a name that have these."""
        return [
            given for name, given in list(self.events)
            if name == event and fields.items() <= given.items()
        ]  # fmt: skip

    def wait(self, event: str, **fields: Any) -> dict[str, Any]:
        """Wait for an event with these fields and return all of them."""
        wait_until(lambda: self.of(event, **fields), 20.0)
        return self.of(event, **fields)[0]
