"""Who waits for a future finds what its call held given back."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from raxol_sync import Client, NotReady, Server
from tests.server.helpers import WAIT


class Watching:
    """A ledger that notes whether a call's future was settled when it was told of it."""

    def __init__(self) -> None:
        self.future: Future[Any] | None = None
        self.told: list[tuple[str, bool]] = []

    def hold(self, reservation: object, tool: str) -> None:
        """Any will do."""

    def spend(self, reservation: object) -> None:
        self._note("spent")

    def give_back(self, reservation: object) -> None:
        self._note("given back")

    def _note(self, what: str) -> None:
        assert self.future is not None
        self.told.append((what, self.future.done()))
        raise LookupError("a ledger of the user's may be broken")


@pytest.mark.parametrize("how", ["answered", "cancelled", "stopped"])
def test_c25_a_reservation_is_settled_before_its_future(how: str) -> None:
    """So that one which was given back can be used at once; whatever the ledger does."""
    begun, release = threading.Event(), threading.Event()
    ledger = Watching()
    with Server("shop") as server:

        @server.tool
        def buy() -> str:
            begun.set()
            release.wait(WAIT)
            return "bought"

        options: dict[str, Any] = {"prices": {"buy": 1.0}, "reservations": ledger}
        with Client("c", server=server, **options) as client:
            future = ledger.future = client.submit_tool("buy", reservation="r")
            assert begun.wait(WAIT)
            if how == "answered":
                release.set()
                assert future.result(WAIT).text == "bought"
            elif how == "cancelled":
                assert future.cancel()
            else:
                client.stop()
                with pytest.raises(NotReady):
                    future.result(WAIT)
            release.set()
    assert ledger.told == [("given back" if how == "stopped" else "spent", False)]
