"""The rules for ``x-mcp-header`` in an input schema (specification 2026-07-28). Floor 2; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from raxol_sync.schema.violations import MAX_DEPTH, join, shown, step_of

HEADER_KEY = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DATA = frozenset({"default", "const", "enum", "examples"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})


def header_problems(schema: Mapping[str, Any]) -> list[str]:
    """Return why the ``x-mcp-header`` annotations of an input schema are invalid; ``[]`` if not.

    An annotation belongs on a string, integer or boolean that is reached through ``properties``
    alone; its name is an HTTP token, unique without regard to case.
    """
    problems: list[str] = []
    seen: dict[str, str] = {}
    for path, reachable, part in _annotated(schema, "", True, 0):
        problem = _problem(part, reachable)
        name = part[HEADER_KEY]
        if problem is None:
            first = seen.setdefault(name.lower(), path)
            if first != path:
                problem = f"the name {shown(name)} is already used by {first}"
        if problem is not None:
            problems.append(f"{HEADER_KEY} at {path or 'the root'}: {problem}")
    return problems


def header_paths(schema: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the header name per path of property names. For a schema without problems."""
    found: dict[tuple[str, ...], str] = {}
    pending: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while pending:
        path, part = pending.pop()
        properties = part.get("properties") if isinstance(part, Mapping) else None
        for name, inner in properties.items() if isinstance(properties, Mapping) else ():
            inside = (*path, name)
            if isinstance(inner, Mapping) and len(inside) <= MAX_DEPTH:
                if isinstance(inner.get(HEADER_KEY), str):
                    found[inside] = inner[HEADER_KEY]
                pending.append((inside, inner))
    return found


def _problem(part: Mapping[str, Any], reachable: bool) -> str | None:
    name = part[HEADER_KEY]
    if not isinstance(name, str) or _TOKEN.fullmatch(name) is None:
        return "the name must be an HTTP token: letters, digits and !#$%&'*+-.^_`|~"
    if not reachable:
        return "it must be on a property of the root, or of objects nested by properties alone"
    if part.get("type") not in ("string", "integer", "boolean"):
        return "the type must be string, integer or boolean"
    return None


def _annotated(
    part: Any, path: str, reachable: bool, depth: int
) -> Iterator[tuple[str, bool, Mapping[str, Any]]]:
    """Yield path, reachability and subschema of each annotation."""
    if not isinstance(part, Mapping) or depth > MAX_DEPTH:
        return
    if HEADER_KEY in part:
        yield path, reachable and depth > 0, part
    for keyword, value in part.items():
        if keyword in _DATA:
            continue
        inside = reachable and keyword == "properties"
        if keyword in _MAPS and isinstance(value, Mapping):
            for name, inner in value.items():
                yield from _annotated(inner, join(path, step_of(name)), inside, depth + 1)
        else:
            for inner in value if isinstance(value, list) else [value]:
                yield from _annotated(inner, join(path, step_of(keyword)), False, depth + 1)
