"""Lists with pages: walking them, bounding them, keeping them (rows C08, C09). Floor 2."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from raxol_sync._deadline import now
from raxol_sync.errors import InvalidResponse, RPCError
from raxol_sync.values import ToolInfo

T = TypeVar("T")
Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.client")

MAX_PAGES = 1000
MAX_ITEMS = 10_000  # of a list other than tools, for which the client has max_tools
MAX_DESCRIPTION = 8192  # bytes
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Page(NamedTuple):
    """One page: its items, what fetches the next one, and until when it is fresh.

    ``fresh_until`` is on the clock of ``now()``; ``None`` is for as long as the session lasts.
    """

    items: list[Any]
    next: str | None
    fresh_until: float | None


def read_page(method: str, key: str, result: Json, *, lasting: bool) -> Page:
    """Read a page's result. ``lasting``: it is fresh for the session, else while ``ttlMs`` lasts.

    Raises:
        InvalidResponse: it has no list.
    """
    items, cursor, ttl = result.get(key), result.get("nextCursor"), result.get("ttlMs")
    if not isinstance(items, list):
        raise InvalidResponse(method, f"it has no {key} list")
    usable = isinstance(ttl, (int, float)) and not isinstance(ttl, bool) and ttl > 0
    until = None if lasting else now() + (float(ttl) / 1000 if usable and ttl else 0.0)
    return Page(items, cursor if isinstance(cursor, str) else None, until)


def walk(method: str, fetch: Callable[[str | None], Page], limit: int) -> list[Any]:
    """Return the items of all pages, at most ``limit`` of them and of 1,000 pages.

    Raises:
        InvalidResponse: a page names a cursor that was used before: the list would never end.
    """
    items: list[Any] = []
    cursor: str | None = None
    used: set[str] = set()
    for _ in range(MAX_PAGES):
        page = fetch(cursor)
        items += page.items[: limit - len(items)]
        cursor = page.next
        if cursor is None or len(items) >= limit:
            break
        if cursor in used:
            raise InvalidResponse(method, "a page's nextCursor was given before")
        used.add(cursor)
    if cursor is not None:
        _log.warning(
            "< %s: the list is longer than %d entries: the rest is left out", method, limit
        )
    return items


def usable(method: str, items: list[Any], read: Callable[[Json], T]) -> list[T]:
    """Return what ``read`` makes of the items; those that it refuses are left out and counted."""
    found: list[T] = []
    dropped = 0
    for item in items:
        try:
            if not isinstance(item, dict):
                raise ValueError("an entry is no object")
            found.append(read(item))
        except ValueError:
            dropped += 1
    if dropped:
        _log.warning("< %s: left out %d entries that cannot be used", method, dropped)
    return found


def read_tool(item: Json) -> ToolInfo:
    """Read a tool; ``ValueError`` for a name or a definition that cannot be used (row C09)."""
    tool = ToolInfo.from_wire(item)
    if not _NAME.fullmatch(tool.name):
        raise ValueError("a tool's name is not valid")
    return replace(tool, description=_cut(tool.description))


def read_web_tool(item: Json) -> ToolInfo:
    """As ``read_tool``, and over HTTP a tool's ``x-mcp-header`` must be usable (rows C09, C30)."""
    from raxol_sync.schema.headers import header_problems  # the rest of schema comes with it

    tool = read_tool(item)
    problems = header_problems(tool.input_schema)
    if problems:
        _log.warning("< tools/list: left out the tool %s: %s", tool.name, problems[0][:200])
        raise ValueError("its x-mcp-header is not valid")
    return tool


def _cut(text: str) -> str:
    """Return text cut at 8,192 bytes, on a character's boundary."""
    if len(text) <= MAX_DESCRIPTION // 4:
        return text
    data = text.encode("utf-8")
    return data[:MAX_DESCRIPTION].decode("utf-8", "ignore") if len(data) > MAX_DESCRIPTION else text


class PageCache:
    """The pages of one list, each while it is fresh. Thread-safe."""

    def __init__(self) -> None:
        # Guards: _pages, _generation, _count, _session. Leaf.
        self._lock = threading.Lock()
        self._pages: dict[str | None, Page] = {}
        self._generation = 0
        self._count = 0
        self._session = 0

    def enter(self, session: int) -> None:
        """Forget what another session has listed; sessions are numbered."""
        with self._lock:
            other, self._session = session != self._session, session
        if other:
            self.drop()

    @property
    def count(self) -> int:
        """How many entries the last list had; 0 after ``drop``."""
        with self._lock:
            return self._count

    def drop(self) -> None:
        """Forget everything, also what is being fetched right now."""
        with self._lock:
            self._generation += 1
            self._pages.clear()
            self._count = 0

    def entries(
        self,
        method: str,
        fetch: Callable[[str | None], Page],
        limit: int,
        read: Callable[[Json], T],
    ) -> list[T]:
        """Return the list's entries, from fresh pages where there are some.

        A cursor of a cached page that the server no longer takes: once more from the beginning.
        """
        generation = self._generation
        reused = False

        def page(cursor: str | None) -> Page:
            nonlocal reused
            kept = self._fresh(cursor)
            if kept is not None:
                reused = True
                return kept
            fetched = fetch(cursor)
            self._keep(cursor, fetched, generation)
            return fetched

        try:
            items = walk(method, page, limit)
        except RPCError:
            if not reused:
                raise
            self.drop()
            generation = self._generation
            items = walk(method, page, limit)
        found = usable(method, items, read)
        with self._lock:
            if generation == self._generation:
                self._count = len(found) if self._pages else 0
        return found

    def _fresh(self, cursor: str | None) -> Page | None:
        with self._lock:
            page = self._pages.get(cursor)
            if page is None or page.fresh_until is None or now() < page.fresh_until:
                return page
            del self._pages[cursor]
            return None

    def _keep(self, cursor: str | None, page: Page, generation: int) -> None:
        with self._lock:
            if generation != self._generation or len(self._pages) >= MAX_PAGES:
                return
            if page.fresh_until is None or now() < page.fresh_until:
                self._pages[cursor] = page
