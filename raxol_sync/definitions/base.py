"""What tools, resources and prompts share: a callback, its binding, its wire form. Floor 2."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raxol_sync.errors import InvalidTool, ToolError
from raxol_sync.hooks import check_hook, problem_of
from raxol_sync.schema import FunctionSchema, function_schema

Json = dict[str, Any]
Completer = Callable[..., Any]
_YEAR = 366 * 86400


class Definition:
    """What all four share: a callback, how its arguments are bound, and what goes on the wire."""

    kind = "definition"

    def __init__(
        self,
        callback: Callable[..., Any],
        *,
        title: str | None,
        icons: Sequence[Mapping[str, Any]],
        meta: Mapping[str, Any] | None,
        completers: Mapping[str, Completer] | None = None,
    ) -> None:
        self.callback = callback
        self.title = title
        self.icons = tuple(icons)
        self.meta = dict(meta) if meta is not None else None
        self.completers = dict(completers or {})
        self._signature: FunctionSchema | None = None
        self._by_keyword = False
        self._context_parameter: str | None = None

    @property
    def circuit(self) -> tuple[str, str]:
        """The key of its circuit breaker (row S45)."""
        raise NotImplementedError

    def is_faulty(self, error: ToolError) -> bool:
        """Return whether a ``ToolError`` of the callback's counts for its breaker (row S45)."""
        return False

    @property
    def needs_context(self) -> bool:
        """Whether the callback has a parameter for a ``Context``."""
        return self._context_parameter is not None

    def call_arguments(self, arguments: Json) -> tuple[tuple[Any, ...], Json]:
        """Return what the callback is called with, without a context: positional and keyword."""
        return ((), arguments) if self._by_keyword else ((arguments,), {})

    def run(self, arguments: Json, context: object) -> Any:
        """Call the callback with checked arguments; its exceptions pass through."""
        if self._by_keyword:
            if self._context_parameter is not None:
                # Over what a peer may have sent by that name, where the schema is given by hand.
                return self.callback(**{**arguments, self._context_parameter: context})
            return self.callback(**arguments)
        return self.callback(arguments)

    def _use_function(
        self, signature: FunctionSchema | None, context_parameter: str | None
    ) -> None:
        self._signature = signature
        self._by_keyword = True
        self._context_parameter = context_parameter

    def _check(self, *problems: str | None) -> None:
        # A completer may be a generator: what it gives is gone through.
        completers = (
            hook_problem(f"the completer of {name!r}", completer, generators=True)
            for name, completer in self.completers.items()
        )
        found = [problem for problem in (*problems, *completers) if problem]
        if found:
            raise InvalidTool(f"{self.kind}: {'; '.join(found)}")

    def _common(self, item: Json) -> Json:
        if self.title is not None:
            item["title"] = self.title
        if self.icons:
            item["icons"] = list(self.icons)
        if self.meta is not None:
            item["_meta"] = self.meta
        return item


def non_empty(name: str, value: object) -> str | None:
    """Return what is wrong with a text that must not be empty, or ``None``."""
    return None if isinstance(value, str) and value.strip() else f"{name} must be a non-empty str"


def needs_mapping(name: str, value: object) -> str | None:
    """Return what is wrong with a JSON object that must be a mapping, or ``None``."""
    if isinstance(value, Mapping):
        return None
    return f"{name} must be a mapping (a JSON object), not {type(value).__name__}"


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def needs_hints(annotations: object) -> str | None:
    """Return what is wrong with a tool's annotations, or ``None``.

    A hint that is misspelt, or no bool, would silently guard nothing.
    """
    if not isinstance(annotations, Mapping):
        return needs_mapping("annotations", annotations)
    for name, value in annotations.items():
        if name in (*_HINTS, "sensitive") and not isinstance(value, bool):
            return f"annotations[{name!r}] must be True or False, not {type(value).__name__}"
        plain = re.sub("[^a-z]", "", str(name).lower())
        for hint in _HINTS:
            if name != hint and plain in (hint.lower(), hint.lower().removesuffix("hint")):
                return f"annotations has {name!r}: it must be {hint!r}"
    return None


def needs_callable(value: object) -> str | None:
    """Return what is wrong with a callback, or ``None``."""
    if not callable(value):
        return "the callback is not callable"
    problem = problem_of(value)
    return None if problem is None else f"the callback {problem}"


def refuse_unbound(function: Any, how: str) -> None:
    """Refuse a method of a class body: callers would have to give it its ``self``.

    Raises:
        InvalidTool: it is one; ``how`` is how its bound method is registered.
    """
    if not inspect.isfunction(function):
        return
    written = inspect.unwrap(function)
    code = getattr(written, "__code__", None)
    first = code.co_varnames[0] if code is not None and code.co_argcount else None
    outer = function.__qualname__.rpartition(".")[0]
    if first not in ("self", "cls") or not outer or outer.endswith("<locals>"):
        return
    try:
        if first in written.__annotations__:  # its author wants one from callers
            return
    except NameError:  # since Python 3.14 hints are looked up now: others are not there yet
        pass
    name = function.__name__
    raise InvalidTool(
        f"{name!r} is a method of {outer.rpartition('.')[2]}, and nobody gives it its "
        f"{first}; register the bound method: {how}(obj.{name})"
    )


def hook_problem(name: str, hook: object, *, generators: bool = False) -> str | None:
    """Return what is wrong with a callable that goes with a definition, or ``None``."""
    try:
        check_hook(name, hook, generators=generators)
    except TypeError as error:
        return str(error)
    return None


def signature_of(function: Callable[..., Any], context_type: type) -> FunctionSchema:
    """Return a function's schema; ``InvalidTool`` where it cannot have one."""
    return function_schema(function, context_type=context_type)


def fill_from(options: Json, signature: FunctionSchema) -> None:
    """Take the name and the description from the function where they were not given."""
    options["name"] = options.get("name") or signature.name
    options["description"] = options.get("description") or signature.description or None


def property_schema(signature: FunctionSchema | None, name: str) -> Mapping[str, Any]:
    """Return the schema of one parameter, ``{}`` where there is none."""
    if signature is None:
        return {}
    found = signature.input_schema.get("properties", {}).get(name, {})
    return found if isinstance(found, dict) else {}


def milliseconds(name: str, seconds: float) -> int:
    """Return a time in seconds as whole milliseconds; ``ValueError`` where it is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ValueError(f"{name} must be a number of seconds, not {type(seconds).__name__}")
    if not 0 <= seconds <= _YEAR:
        raise ValueError(f"{name} must be from 0 to {_YEAR} seconds, not {seconds}")
    return round(seconds * 1000)


def caching(cache_ttl: float | None, cache_scope: str | None) -> Json:
    """Return what a resource says of keeping its contents; nothing where nothing was given."""
    if cache_scope not in (None, "public", "private"):
        raise InvalidTool("cache_scope must be 'public' or 'private'")
    hints: Json = {}
    if cache_ttl is not None:
        try:
            hints["ttlMs"] = milliseconds("cache_ttl", cache_ttl)
        except ValueError as error:
            raise InvalidTool(str(error)) from None
    if cache_scope is not None:
        hints["cacheScope"] = cache_scope
    return hints


def with_details(
    item: Json, description: str | None, mime_type: str | None, **more: object
) -> Json:
    """Return a definition with what describes it; what is ``None`` is left out."""
    if description:
        item["description"] = description
    if mime_type:
        item["mimeType"] = mime_type
    item.update({key: value for key, value in more.items() if value is not None})
    return item
