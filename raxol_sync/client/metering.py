"""What calls may cost: prices, and reservations against a budget (row C25). Floor 2.

A reservation is *held* while its call is on the way to the transport, *spent* once the transport
has it, and given back where nothing was sent. It is never spent twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from raxol_sync._deadline import now
from raxol_sync.errors import InvalidSpec, UnknownPrice, UnmeteredCall

MAX_OPEN = 10_000  # reservations that are neither spent nor expired
LIFETIME = 300.0  # seconds


@dataclass(frozen=True)
class Reservation:
    """The right to one call of a tool. Made by ``ReservationLedger.mint``.

    Attributes:
        token: what identifies it.
        tool: the tool that it is for.
        amount: what was set aside for it, in the budget's unit.
    """

    token: str
    tool: str
    amount: float


class LedgerLike(Protocol):
    """What ``reservations=`` must do; ``ReservationLedger`` is one."""

    def hold(self, reservation: Any, tool: str) -> None:
        """Take a reservation for one call; ``UnmeteredCall`` if it cannot be used."""

    def spend(self, reservation: Any) -> None:
        """The held reservation's call was handed to the transport."""

    def give_back(self, reservation: Any) -> None:
        """Nothing was sent: the held reservation may be used again."""


class ReservationLedger:
    """A budget and the reservations against it. Thread-safe."""

    def __init__(self, budget: float) -> None:
        """``budget``: what all calls together may cost, in a unit of the caller's."""
        self._budget = _amount("budget", budget)
        # Guards: _spent, _open. Leaf.
        self._lock = threading.Lock()
        self._spent = 0.0
        self._open: dict[str, tuple[Reservation, float, bool]] = {}  # with its end, and held

    @property
    def remaining(self) -> float:
        """What is left of the budget: neither spent nor set aside."""
        with self._lock:
            return self._remaining()

    def mint(self, tool: str, amount: float, *, lifetime: float = LIFETIME) -> Reservation:
        """Set an amount aside for one call of a tool.

        Args:
            tool: its name.
            amount: what the call costs.
            lifetime: for how many seconds it is good; after that it goes back to the budget.

        Raises:
            UnmeteredCall: the budget does not hold as much, or too many are open.
        """
        import secrets  # at first use: it takes as long to load as all else here

        amount = _amount("amount", amount)
        reservation = Reservation(secrets.token_hex(16), tool, amount)
        with self._lock:
            left = self._remaining()
            if amount > left:
                raise UnmeteredCall(tool, "the budget does not hold its price")
            if len(self._open) >= MAX_OPEN:
                raise UnmeteredCall(tool, f"{MAX_OPEN} reservations are open")
            self._open[reservation.token] = (reservation, now() + lifetime, False)
        return reservation

    def hold(self, reservation: Any, tool: str) -> None:
        """See ``LedgerLike``: it must be known, not expired, not in use, and for this tool."""
        with self._lock:
            self._expire()
            found = self._open.get(_token(reservation))
            if found is None:
                raise UnmeteredCall(tool, "the reservation is not known, has expired or was spent")
            known, end, held = found
            if known.tool != tool:
                raise UnmeteredCall(tool, "the reservation is for another tool")
            if held:
                raise UnmeteredCall(tool, "the reservation is in use")
            self._open[known.token] = (known, end, True)

    def spend(self, reservation: Any) -> None:
        """See ``LedgerLike``."""
        with self._lock:
            found = self._open.pop(_token(reservation), None)
            if found is not None:
                self._spent += found[0].amount

    def give_back(self, reservation: Any) -> None:
        """See ``LedgerLike``."""
        with self._lock:
            found = self._open.get(_token(reservation))
            if found is not None:
                self._open[found[0].token] = (found[0], found[1], False)

    def _remaining(self) -> float:
        self._expire()
        return self._budget - self._spent - sum(known.amount for known, _, _ in self._open.values())

    def _expire(self) -> None:
        moment = now()
        old = [token for token, (_, end, held) in self._open.items() if end <= moment and not held]
        for token in old:
            del self._open[token]


class OnceLedger:
    """Stands in where no ledger was given: any reservation will do, each once. Thread-safe.

    What was spent is remembered, the oldest forgotten past ``MAX_OPEN``.
    """

    def __init__(self) -> None:
        # Guards: _used. Leaf.
        self._lock = threading.Lock()
        self._used: dict[Any, None] = {}

    def hold(self, reservation: Any, tool: str) -> None:
        """See ``LedgerLike``."""
        with self._lock:
            if _token(reservation) in self._used:
                raise UnmeteredCall(tool, "the reservation was used before")
            self._used[_token(reservation)] = None
            if len(self._used) > MAX_OPEN:
                del self._used[next(iter(self._used))]

    def spend(self, reservation: Any) -> None:
        """See ``LedgerLike``; it is remembered already."""

    def give_back(self, reservation: Any) -> None:
        """See ``LedgerLike``."""
        with self._lock:
            self._used.pop(_token(reservation), None)


class Meter:
    """Prices and the ledger of one client. Thread-safe."""

    def __init__(
        self,
        prices: Mapping[str, float] | None,
        metered: bool | None,
        ledger: LedgerLike | None,
    ) -> None:
        """Calls are metered with ``prices`` or ``metered=True``; ``metered=False`` says not."""
        self._prices = {tool: _amount("a price", price) for tool, price in (prices or {}).items()}
        self.on = bool(prices) if metered is None else metered
        self._ledger: LedgerLike = ledger if ledger is not None else OnceLedger()
        self.tell: Callable[..., object] = lambda event, **fields: None  # telemetry

    def check(self, tool: str, reservation: object) -> Holding | None:
        """Hold a call's reservation; ``None`` where none is needed.

        Raises:
            UnknownPrice: the tool has no price.
            UnmeteredCall: it has one, and there is no reservation that can be used.
        """
        if not self.on:
            return None
        try:
            return self._hold(tool, reservation)
        except (UnknownPrice, UnmeteredCall) as error:
            self.tell("call_refused", tool=tool, error=type(error).__name__)
            raise

    def _hold(self, tool: str, reservation: object) -> Holding | None:
        price = self._prices.get(tool)
        if price is None:
            raise UnknownPrice(tool)
        if price == 0 and reservation is None:
            return None
        if reservation is None:
            raise UnmeteredCall(tool)
        self._ledger.hold(reservation, tool)
        return Holding(self._ledger, reservation, partial(self.tell, tool=tool))


class Holding:
    """A reservation on its way. ``spend`` or ``give_back``, whichever comes first, counts."""

    __slots__ = ("_ledger", "_reservation", "_tell")

    def __init__(
        self, ledger: LedgerLike, reservation: object, tell: Callable[[str], object]
    ) -> None:
        self._ledger: LedgerLike | None = ledger
        self._reservation = reservation
        self._tell = tell

    def spend(self) -> None:
        """The call was handed to the transport."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.spend(self._reservation)
            self._tell("reservation_spent")

    def give_back(self) -> None:
        """Nothing was sent."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.give_back(self._reservation)
            self._tell("reservation_returned")


def _token(reservation: Any) -> Any:
    return getattr(reservation, "token", reservation)


def _amount(word: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e300:
        raise InvalidSpec(f"{word} must be a number of at least 0")
    return float(value)
