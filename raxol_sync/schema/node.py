"""The compiled form of one type hint: its schema and its converters. Floor 2; pure.

A node is made once, when a function is registered. Its converters are closures that know the hint
already, so that a call inspects no types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raxol_sync.schema.violations import MAX_DEPTH, Mismatch

Convert = Callable[[Any, int], Any]
"""``convert(json_value, depth)`` returns the Python value or raises ``Mismatch``."""

Schema = dict[str, Any]


class UnsupportedHint(Exception):
    """Raised while compiling a hint that has no JSON form; the text says what and what to do."""


@dataclass(frozen=True)
class Node:
    """A compiled hint. Immutable after the builder is done with it, so thread-safe.

    ``exact`` takes only values of the hint's own JSON type, ``lenient`` takes those and also the
    lossless substitutes that ``raxol_sync.schema`` lists. ``expected`` is the hint in words, for
    messages. ``nullable`` says that ``None`` fits. ``keys`` converts the keys of a JSON object,
    where the hint can be the key of a ``dict``. ``described`` says that the description was
    written beside the hint, so that no docstring replaces it.
    """

    schema: Schema
    exact: Convert
    lenient: Convert
    expected: str
    nullable: bool = False
    keys: Convert | None = None
    described: bool = False


def too_deep(depth: int) -> None:
    """Raise ``Mismatch`` once values are nested deeper than ``MAX_DEPTH``."""
    if depth > MAX_DEPTH:
        raise Mismatch("depth", f"at most {MAX_DEPTH} levels")


def identity(value: Any, depth: int) -> Any:
    """Convert nothing: any value fits."""
    return value


def anything() -> Node:
    """Return the node of ``Any``, ``object`` and of a missing hint."""
    return Node({}, identity, identity, "any value", nullable=True)
