"""What a server offers, by name: tools, resources, resource templates, prompts. Floor 2 (row S43).

Reads take no lock: each kind is one immutable snapshot, replaced as a whole by a writer. A reader
that took a snapshot keeps it; the next read sees the next one.
"""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from raxol_sync.breaker import State
from raxol_sync.circuits import Circuits, How, Key
from raxol_sync.definitions import Definition, Prompt, Resource, ResourceTemplate, Tool
from raxol_sync.errors import Cancelled, InvalidTool, ToolError
from raxol_sync.results import Unsendable, error_result, tool_result
from raxol_sync.schema import ArgumentError
from raxol_sync.values import CallResult

DefinitionT = TypeVar("DefinitionT", bound=Definition)
_log = logging.getLogger("raxol_sync.server")
_USUAL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")


@dataclass(frozen=True)
class Entry(Generic[DefinitionT]):
    """One registered definition. ``position`` is its place in the order of registration."""

    position: int
    item: DefinitionT
    derived: bool


@dataclass(frozen=True)
class Page(Generic[DefinitionT]):
    """A part of a list and the position after which the next one begins, ``None`` at the end."""

    items: list[DefinitionT]
    next_position: int | None


class Table(Generic[DefinitionT]):
    """One kind's snapshot. Reads are thread-safe; writes are serialised by the registry's lock."""

    def __init__(self, kind: type[DefinitionT], key: str) -> None:
        self.kind = kind
        self.key = key
        self.entries: dict[str, Entry[DefinitionT]] = {}
        self._next_position = 1

    def get(self, key: str) -> DefinitionT | None:
        """Return the definition of that key, or ``None``."""
        entry = self.entries.get(key)
        return entry.item if entry is not None else None

    def items(self) -> list[DefinitionT]:
        """Return all definitions in the order of their registration."""
        return [entry.item for entry in self.entries.values()]

    def page(self, after: int, size: int | None) -> Page[DefinitionT]:
        """Return the definitions that follow a position, at most ``size`` of them."""
        following = [entry for entry in self.entries.values() if entry.position > after]
        shown = following if size is None else following[:size]
        more = len(shown) < len(following)
        return Page([entry.item for entry in shown], shown[-1].position if more else None)

    def replaced(
        self, items: Iterable[DefinitionT], *, derived: bool = False
    ) -> tuple[dict[str, Entry[DefinitionT]], list[DefinitionT]]:
        """Return the entries with ``items`` added, and which of these took another one's place."""
        entries = dict(self.entries)
        successors: list[DefinitionT] = []
        for item in items:
            key = getattr(item, self.key)
            old = entries.get(key)
            if old is not None and old.item is not item:
                successors.append(item)
            position = old.position if old is not None else self._next_position
            self._next_position = max(self._next_position, position + 1)
            entries[key] = Entry(position, item, derived)
        return entries, successors


class Registry:
    """The tools, resources, resource templates and prompts of one or more servers. Thread-safe."""

    def __init__(self) -> None:
        # Guards: writes to the four tables, _watchers. Leaf: watchers are called after it.
        self._lock = threading.Lock()
        self.tools: Table[Tool] = Table(Tool, "name")
        self.resources: Table[Resource] = Table(Resource, "uri")
        self.templates: Table[ResourceTemplate] = Table(ResourceTemplate, "uri_template")
        self.prompts: Table[Prompt] = Table(Prompt, "name")
        self.circuits = Circuits(self._registered)
        self._watchers: list[weakref.WeakMethod[Callable[[str], None]]] = []

    def register_tools(self, tools: Iterable[Tool], derived: bool = False) -> None:
        """Add tools, all or none; one of a name that exists replaces it in its place.

        ``derived`` marks tools that an application makes and drops as it runs.

        Raises:
            InvalidTool: one is not a ``Tool``; names its index.
        """
        self._register(self.tools, tools, derived=derived)

    def unregister_tools(self, names: Iterable[str]) -> None:
        """Drop the tools of these names; unknown names are ignored."""
        self._unregister(self.tools, names)

    def list_tools(self) -> list[Tool]:
        """Return all tools in the order of registration."""
        return self.tools.items()

    def static_tools(self) -> list[Tool]:
        """Return the tools that were not registered as derived."""
        return [entry.item for entry in self.tools.entries.values() if not entry.derived]

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> CallResult:
        """Call a tool here and now, on the caller's thread, behind its circuit breaker.

        What goes wrong with the arguments or in the tool is a result with ``is_error``, as for a
        client; policies, time-outs and processes are the server's and take no part.

        Raises:
            LookupError: there is no such tool.
            TypeError: the arguments are no mapping.
            ToolError: it needs a ``Context``, which only a server can give.
            KeyboardInterrupt, Cancelled: somebody wants the caller to stop.
        """
        if arguments is not None and not isinstance(arguments, Mapping):
            raise TypeError(f"arguments must be a mapping, not {type(arguments).__name__}")
        tool = self.tools.get(name)
        if tool is None:
            raise LookupError(f"no tool is registered as {name!r}")
        if tool.needs_context:
            raise ToolError(f"the tool {name!r} takes a Context: call it through a server")
        admission = self.circuits.admit(tool)
        if admission is None:
            return CallResult.from_wire(error_result(f"the tool {name!r} is left alone for now"))
        how: How = "fault"
        try:
            bound = tool.bind(dict(arguments or {}))
            result = tool_result(tool, tool.run(bound, None))
            how = "good"
        except ArgumentError as error:
            how, result = "nothing", error_result(str(error))
        except ToolError as error:
            how = "fault" if tool.is_faulty(error) else "good"
            result = error_result(error.message)
        except Unsendable as error:
            _log.error("! %s returned what cannot be sent: %s", tool.kind, error)
            result = error_result(f"the tool's result cannot be sent: {error}")
        except (KeyboardInterrupt, Cancelled):  # the caller is to stop: no fault of the tool's
            how = "nothing"
            raise
        except BaseException as error:  # user code: its failure is the tool's result (row S46)
            _log.exception("! %s failed", tool.kind)
            result = error_result(f"the tool failed: {type(error).__name__}")
        finally:
            self.circuits.report(admission, how)
        return CallResult.from_wire(result)

    def circuit_status(self, key: Key) -> State:
        """Return ``closed``, ``open`` or ``half_open`` (row S45).

        ``key`` is ``("tool", name)``, ``("resource", uri or template)`` or ``("prompt", name)``.
        """
        return self.circuits.state(key)

    def reset_circuit(self, key: Key) -> None:
        """Close a circuit breaker at once; a key without one is left alone."""
        self.circuits.reset(key)

    def _registered(self, key: Key) -> Definition | None:
        kind, name = key
        if kind == "tool":
            return self.tools.get(name)
        if kind == "prompt":
            return self.prompts.get(name)
        return self.resources.get(name) or self.templates.get(name)

    def register_resources(self, resources: Iterable[Resource]) -> None:
        """Add resources, all or none; ``InvalidTool`` names the index of what is not one."""
        self._register(self.resources, resources)

    def unregister_resources(self, uris: Iterable[str]) -> None:
        """Drop the resources of these URIs; unknown ones are ignored."""
        self._unregister(self.resources, uris)

    def list_resources(self) -> list[Resource]:
        """Return all resources in the order of registration."""
        return self.resources.items()

    def register_resource_templates(self, templates: Iterable[ResourceTemplate]) -> None:
        """Add templates, all or none; ``InvalidTool`` names the index of what is not one."""
        self._register(self.templates, templates)

    def unregister_resource_templates(self, uri_templates: Iterable[str]) -> None:
        """Drop the resource templates of these texts; unknown ones are ignored."""
        self._unregister(self.templates, uri_templates)

    def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return all resource templates in the order of registration."""
        return self.templates.items()

    def register_prompts(self, prompts: Iterable[Prompt]) -> None:
        """Add prompts, all or none; ``InvalidTool`` names the index of what is not one."""
        self._register(self.prompts, prompts)

    def unregister_prompts(self, names: Iterable[str]) -> None:
        """Drop the prompts of these names; unknown names are ignored."""
        self._unregister(self.prompts, names)

    def list_prompts(self) -> list[Prompt]:
        """Return all prompts in the order of registration."""
        return self.prompts.items()

    def register_all(
        self,
        *,
        tools: Iterable[Tool] = (),
        resources: Iterable[Resource | ResourceTemplate] = (),
        prompts: Iterable[Prompt] = (),
    ) -> None:
        """Add all of these or, if one is not valid, none.

        Raises:
            InvalidTool: names the index and the reason of each that is not valid.
        """
        tools, resources, prompts = list(tools), list(resources), list(prompts)
        problems = _wrong("tools", tools, Tool)
        problems += _wrong("resources", resources, (Resource, ResourceTemplate))
        problems += _wrong("prompts", prompts, Prompt)
        if problems:
            raise InvalidTool("; ".join(problems))
        self._register(self.tools, tools)
        self._register(self.resources, [r for r in resources if isinstance(r, Resource)])
        self._register(self.templates, [r for r in resources if isinstance(r, ResourceTemplate)])
        self._register(self.prompts, prompts)

    def match_template(self, uri: str) -> tuple[ResourceTemplate, dict[str, str]] | None:
        """Return the first template that fits a URI, with its variables' values; or ``None``."""
        for entry in self.templates.entries.values():
            variables = entry.item.template.match(uri)
            if variables is not None:
                return entry.item, variables
        return None

    def watch(self, watcher: Callable[[str], None]) -> None:
        """Have a bound method called with ``tools``, ``resources`` or ``prompts`` on each change.

        It is held weakly: a server that nobody else holds is not kept alive by its registry.
        """
        with self._lock:
            alive = [known for known in self._watchers if known() is not None]
            self._watchers = [*alive, weakref.WeakMethod(watcher)]

    def unwatch(self, watcher: Callable[[str], None]) -> None:
        """Undo ``watch``."""
        with self._lock:
            self._watchers = [k for k in self._watchers if k() not in (None, watcher)]

    def _register(
        self, table: Table[DefinitionT], items: Iterable[DefinitionT], *, derived: bool = False
    ) -> None:
        items = list(items)
        problems = _wrong(table.kind.__name__, items, table.kind)
        if problems:
            raise InvalidTool("; ".join(problems))
        for item in items:
            if table.key == "name":
                _warn_about_name(item.kind, getattr(item, "name", ""))
        with self._lock:
            table.entries, successors = table.replaced(items, derived=derived)
        for item in successors:
            self.circuits.forget(item.circuit)  # the faults were another one's
            _log.warning("%s replaces the one registered before", item.kind)
        if items:
            self._changed(table)

    def _unregister(self, table: Table[DefinitionT], keys: Iterable[str]) -> None:
        gone = set(keys)
        with self._lock:
            kept = {key: entry for key, entry in table.entries.items() if key not in gone}
            changed = len(kept) < len(table.entries)
            dropped = [entry.item for key, entry in table.entries.items() if key not in kept]
            table.entries = kept
        for item in dropped:
            self.circuits.forget(item.circuit)
        if changed:
            self._changed(table)

    def _changed(self, table: Table[DefinitionT]) -> None:
        kind = "resources" if table.key in ("uri", "uri_template") else f"{table.kind.kind}s"
        for watcher in list(self._watchers):
            notify = watcher()
            if notify is not None:
                notify(kind)


def _wrong(what: str, items: list[DefinitionT], kind: type | tuple[type, ...]) -> list[str]:
    return [
        f"{what}[{index}]: a {type(item).__name__} cannot be registered here"
        for index, item in enumerate(items)
        if not isinstance(item, kind)
    ]


def _warn_about_name(kind: str, name: str) -> None:
    if not _USUAL_NAME.match(name):
        _log.warning("%s: many clients accept only names of 1-128 letters, digits, _ - .", kind)
