"""``a=1`` on the command line: what it means, by the tool's schema. Floor 5; pure.

A value is JSON where the schema takes that, else the string as it was typed. Where a schema takes
nothing but strings, quotes are part of the string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from raxol_sync.cli.failures import UsageError

Json = dict[str, Any]
_MAX_DEPTH = 16  # of references and alternatives that are followed
_OTHER_KINDS: tuple[Any, ...] = (0, True, None, [], {})


def typed(text: str, schema: object, root: object) -> Any:
    """Return the value that ``text`` stands for.

    Args:
        text: as it was typed.
        schema: the argument's schema, or ``True`` where nothing is known of it.
        root: the schema that its references lead into.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return text
    if not takes(schema, value, root):
        return text
    if isinstance(value, str) and not any(takes(schema, kind, root) for kind in _OTHER_KINDS):
        return text
    return value


def arguments(pairs: Mapping[str, str], schema: Mapping[str, Any]) -> Json:
    """Return the arguments of a call of a tool with this input schema.

    Raises:
        UsageError: one was meant as JSON and is none.
    """
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    others = schema.get("additionalProperties", True)
    for name, text in pairs.items():
        _refuse_broken(name, text, known.get(name, others), schema)
    return {name: typed(text, known.get(name, others), schema) for name, text in pairs.items()}


def _refuse_broken(name: str, text: str, schema: object, root: object) -> None:
    """Refuse what begins as JSON and is none, where the schema does not take it as a string."""
    if text.lstrip()[:1] not in ("[", "{") or takes(schema, text, root):
        return
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{error.msg} (character {error.pos + 1})"
        raise UsageError(f"{name} begins as JSON does and is none: {place}") from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply") from None


def takes(schema: object, value: Any, root: object, depth: int = 0) -> bool:
    """Return whether a schema admits values of this kind. Bounds and patterns are the server's."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return schema is not False
    target = _resolve(schema.get("$ref"), root)
    if target is not None and not takes(target, value, root, depth + 1):
        return False
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, list) and not any(
            takes(branch, value, root, depth + 1) for branch in branches
        ):
            return False
    parts = schema.get("allOf")
    if isinstance(parts, list) and not all(takes(part, value, root, depth + 1) for part in parts):
        return False
    return _has_type(schema, value)


def shape(schema: object, root: object, depth: int = 0) -> str:
    """Return what a value should be, in a word or a few: ``integer``, ``C|F``, ``array``."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return "any"
    target = _resolve(schema.get("$ref"), root)
    if target is not None:
        return shape(target, root, depth + 1)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= 6:
        return "|".join(c if isinstance(c, str) else json.dumps(c) for c in choices)
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return kinds
    if isinstance(kinds, list):
        return "|".join(str(kind) for kind in kinds)
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, list):
            return "|".join(dict.fromkeys(shape(branch, root, depth + 1) for branch in branches))
    return "any"


def signature(schema: Mapping[str, Any]) -> str:
    """Return a tool's arguments as they are typed, optional ones in brackets."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return ""
    needed = required if isinstance(required, list) else []
    words = [(f"{name}={shape(part, schema)}", name in needed) for name, part in properties.items()]
    return " ".join(word if must else f"[{word}]" for word, must in words)


def _has_type(schema: Json, value: Any) -> bool:
    kinds = schema.get("type")
    if kinds is None:
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        return not isinstance(choices, list) or any(_same(value, choice) for choice in choices)
    return any(_is(value, kind) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _is(value: Any, kind: object) -> bool:
    if isinstance(value, bool) or value is None:
        return kind == ("null" if value is None else "boolean")
    if isinstance(value, (int, float)):
        return kind == "number" or (kind == "integer" and value == int(value))
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return kind == names[type(value)]


def _same(value: Any, choice: Any) -> bool:
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)


def _resolve(reference: object, root: object) -> object:
    """Return what a reference inside the schema leads to; ``None`` where there is none."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: object = root
    for step in reference[2:].split("/"):
        if not isinstance(found, dict):
            return None
        found = found.get(step.replace("~1", "/").replace("~0", "~"))
    return found


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("too large")
    return number


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
