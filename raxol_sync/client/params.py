"""The params of a client's requests, and the shapes of their results. Floor 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raxol_sync.content import Contents, contents_from_wire

Json = dict[str, Any]


def call_params(name: str, arguments: object, progress: object = None, meta: object = None) -> Json:
    """Return the params of a call; ``TypeError`` for arguments of a wrong type."""
    if progress is not None and not callable(progress):
        raise TypeError("progress must be callable: (done, total, message)")
    params: Json = {"name": string("name", name)}
    if isinstance(arguments, Mapping):
        params["arguments"] = dict(arguments)
    elif arguments is not None:
        kind = type(arguments).__name__
        raise TypeError(f"arguments must be a mapping of names to values, not {kind}")
    return with_meta(params, meta)


def with_meta(params: Json, meta: object) -> Json:
    """Return params with what the caller wants in their ``_meta``; checked when it is sent."""
    return params if meta is None else {**params, "_meta": meta}


def string(word: str, value: object) -> str:
    """Return a string; ``TypeError`` for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{word} must be a string, not {type(value).__name__}")
    return value


def strings(word: str, value: object, example: str) -> dict[str, str]:
    """Return a mapping of strings; ``TypeError`` for anything else. ``example``: of one."""
    if not isinstance(value, Mapping):
        kind = type(value).__name__
        raise TypeError(f"{word} must be a mapping such as {example}, not {kind}")
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise TypeError(f"{word} must hold strings only, as in {example}")
    return dict(value)


def contents(result: Json) -> list[Contents]:
    """Read a ``resources/read`` result; ``ValueError`` where it is none."""
    items = result.get("contents")
    if not isinstance(items, list):
        raise ValueError("it has no contents list")
    return [contents_from_wire(item) for item in items]
