"""What a client was asked to watch (row C31). Floor 2."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple

from raxol_sync._deadline import Deadline, now
from raxol_sync.errors import MCPError

KINDS = ("tools", "prompts", "resources")
_KIND_OF = {f"notifications/{kind}/list_changed": kind for kind in KINDS}
UPDATED = "notifications/resources/updated"
_SLICE = 0.5  # seconds; how late an interrupt may be noticed

Told = Callable[[str], object]


class Filter(NamedTuple):
    """Which changes: of lists, by ``KINDS``, and of resources, by their URIs."""

    kinds: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()

    def __or__(self, other: Filter) -> Filter:
        return Filter(self.kinds | other.kinds, self.uris | other.uris)

    def common(self, other: Filter) -> Filter:
        """Return what is in both."""
        return Filter(self.kinds & other.kinds, self.uris & other.uris)

    @property
    def empty(self) -> bool:
        """Whether it lets nothing through."""
        return not self.kinds and not self.uris

    def params(self) -> dict[str, Any]:
        """Return the params of a listen for it."""
        wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in sorted(self.kinds)}
        if self.uris:
            wanted["resourceSubscriptions"] = sorted(self.uris)
        return {"notifications": wanted}


def agreed(params: Mapping[str, Any]) -> Filter:
    """Return the filter of an acknowledgement; what is no filter lets nothing through."""
    given = params.get("notifications")
    given = given if isinstance(given, dict) else {}
    uris = given.get("resourceSubscriptions")
    uris = uris if isinstance(uris, list) else []
    return Filter(
        frozenset(kind for kind in KINDS if given.get(f"{kind}ListChanged") is True),
        frozenset(uri for uri in uris if isinstance(uri, str)),
    )


def kind_of(method: str) -> str | None:
    """Return which list has changed, by a notification's method."""
    return _KIND_OF.get(method)


def covers(watched: str, uri: str) -> bool:
    """Return whether a resource is the watched one or, as servers may say it, inside of it."""
    if watched == uri:
        return True
    inside = uri.startswith(watched) and bool(watched)
    return inside and (watched.endswith("/") or uri[len(watched)] in "/?#")


class ClientSubscription:
    """Changes that a client watches, until ``close()`` (or the end of its ``with``). Thread-safe.

    It lasts over reconnections: the server is asked anew. ``kinds`` are the lists (``tools``,
    ``prompts``, ``resources``) and ``uris`` the resources that the server has agreed to tell of.
    """

    def __init__(
        self,
        wanted: Filter,
        callback: Told | None,
        *,
        on_close: Callable[[ClientSubscription], object],
        is_active: Callable[[ClientSubscription], bool],
    ) -> None:
        """Made by ``Client.subscribe`` and ``Client.listen``."""
        self.wanted = wanted
        self._callback = callback
        self._on_close = on_close
        self._is_active = is_active
        self.state: Literal["waiting", "kept", "closed"] = "waiting"
        self.granted = Filter()
        self.deadline = Deadline(None)
        self._error: MCPError | None = None
        self._settled = threading.Event()

    @property
    def kinds(self) -> frozenset[str]:
        """The lists whose changes the server tells of."""
        return self.granted.kinds

    @property
    def uris(self) -> frozenset[str]:
        """The resources whose changes the server tells of."""
        return self.granted.uris

    @property
    def active(self) -> bool:
        """Whether the server tells of them now: not while the connection is lost."""
        return self.state == "kept" and self._is_active(self)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.state == "closed"

    def close(self) -> None:
        """No callback begins any more; the server is told in the background. Idempotent."""
        if self.state != "closed":
            self.state = "closed"
            self._on_close(self)

    def __enter__(self) -> ClientSubscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        what = [*sorted(self.wanted.kinds), *sorted(self.wanted.uris)[:3]]
        more = len(self.wanted.uris) - 3
        shown = ", ".join(what) + (f" and {more} more" if more > 0 else "")
        return f"<ClientSubscription {self.state}: {shown}>"

    # ------------------------------------------------------------ for the watcher

    def settle(self, granted: Filter, error: MCPError | None = None) -> None:
        """Say what came of it: it is kept, or there is an error."""
        if self.state == "waiting":
            self.granted, self._error = granted, error
            self.state = "closed" if error is not None else "kept"
        self._settled.set()

    def wait(self, deadline: Deadline) -> bool:
        """Wait until it is settled; return whether it is. Raises the error that it came to."""
        end = deadline.at
        while not self._settled.wait(_SLICE if end is None else min(_SLICE, max(0, end - now()))):
            if deadline.expired():
                return False
        if self._error is not None:
            raise self._error
        return True

    def wants(self, kind: str | None, uri: str | None) -> bool:
        """Return whether it is to be told of a list's or a resource's change."""
        if kind is not None:
            return kind in self.granted.kinds
        return uri is not None and any(covers(watched, uri) for watched in self.granted.uris)

    def tell(self, what: str) -> None:
        """Call the callback; on the delivery thread."""
        if self._callback is not None and self.state == "kept":
            self._callback(what)


def as_uris(uri: object) -> frozenset[str]:
    """Return a subscription's URIs: one, or several; ``TypeError`` for anything else."""
    given = [uri] if isinstance(uri, str) else uri
    if not isinstance(given, Iterable):
        raise TypeError(f"uri must be a string or several, not {type(uri).__name__}")
    found = frozenset(given)
    if not found or not all(isinstance(one, str) and one for one in found):
        raise TypeError("uri must be a string that is not empty, or several of them")
    return found
