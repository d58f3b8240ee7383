"""``completion/complete``: values for an argument that is being typed (row S12). Floor 3."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from raxol_sync.definitions import Definition, Prompt, ResourceTemplate, Tool
from raxol_sync.errors import INTERNAL_ERROR, INVALID_PARAMS, RPCError, ToolError
from raxol_sync.registry import Registry

Json = dict[str, Any]

MAX_VALUES = 100  # the specification's limit
_MAX_ASKED = 10_000  # how many values of a completer are counted before we stop


def complete(registry: Registry, params: Mapping[str, Any]) -> Json | Callable[[], Json]:
    """Return the completion, or the job that asks a completer for it.

    Raises:
        RPCError: the reference or the argument is not valid, or names nothing registered.
    """
    definition = _referenced(registry, params.get("ref"))
    argument = params.get("argument")
    if not isinstance(argument, dict):
        raise RPCError(INVALID_PARAMS, "argument must be an object with name and value")
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        raise RPCError(INVALID_PARAMS, "argument.name and argument.value must be strings")
    known = _known(params.get("context"))
    completer = definition.completers.get(name)
    if completer is None:
        return _answer(v for v in _enumerated(definition, name) if v.startswith(value))
    return lambda: _answer(_ask(completer, value, known))


def _known(context: object) -> Json:
    """Return the values of other arguments that a request brings."""
    if context is None:
        return {}
    others = context.get("arguments", {}) if isinstance(context, dict) else None
    if not isinstance(others, dict) or not all(isinstance(v, str) for v in others.values()):
        raise RPCError(INVALID_PARAMS, "context.arguments must be an object of strings")
    return others


def _referenced(registry: Registry, ref: object) -> Definition:
    if not isinstance(ref, dict):
        raise RPCError(INVALID_PARAMS, "ref must be an object with a type")
    kind, name, uri = ref.get("type"), ref.get("name"), ref.get("uri")
    found: Definition | None = None
    if kind == "ref/prompt" and isinstance(name, str):
        found = registry.prompts.get(name)
    elif kind == "ref/tool" and isinstance(name, str):
        found = registry.tools.get(name)
    elif kind == "ref/resource" and isinstance(uri, str):
        matched = registry.match_template(uri)
        found = registry.templates.get(uri) or registry.resources.get(uri)
        found = found or (matched[0] if matched else None)
    if found is None:
        raise RPCError(INVALID_PARAMS, "ref names no prompt, resource or tool of this server")
    return found


def _enumerated(definition: Definition, name: str) -> list[str]:
    if isinstance(definition, Tool):
        schema: Any = definition.input_schema.get("properties", {}).get(name, {})
    elif isinstance(definition, (Prompt, ResourceTemplate)):
        schema = definition.argument_schema(name)
    else:
        return []
    values = schema.get("enum", []) if isinstance(schema, Mapping) else []
    return [value for value in values if isinstance(value, str)]


def _ask(completer: Callable[..., Any], value: str, known: Mapping[str, Any]) -> Iterable[str]:
    """Call a completer: with the input, and if it takes two, with the arguments known so far."""
    try:
        values: Iterable[str] = (
            completer(value, known) if _takes_two(completer) else completer(value)
        )
        return values
    except ToolError as error:
        raise RPCError(INTERNAL_ERROR, error.message) from None


def _takes_two(completer: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(completer).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional for p in parameters) >= 2


def _answer(values: Iterable[str]) -> Json:
    found: list[str] = []
    for count, value in enumerate(values):
        if count >= _MAX_ASKED:
            break
        found.append(str(value))
    shown = found[:MAX_VALUES]
    completion = {"values": shown, "total": len(found), "hasMore": len(found) > len(shown)}
    return {"completion": completion}
