"""What did not fit: violations, the errors that carry them, and the bounds. Floor 2; pure.

A violation names a path, a JSON Schema keyword and an expectation, and never the value that broke
the rule: arguments may hold secrets (row S44). Names of arguments and keys do appear, cut short.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MAX_DEPTH = 64
"""How deep arguments, results, hints and schemas may be nested."""

MAX_VIOLATIONS = 10
"""How many violations one error reports; checking stops there."""

MAX_NAME = 60
"""How many characters of a key or of a schema's own text are shown in a message."""


@dataclass(frozen=True)
class Violation:
    """One rule that a value broke.

    ``path`` says where (``order.items[2].price``; empty for the whole value), ``keyword`` is the
    JSON Schema keyword, ``expected`` is the rule in words. Immutable, so thread-safe.
    """

    path: str
    keyword: str
    expected: str

    def __str__(self) -> str:
        where = self.path or "(the whole value)"
        return f"{where}: {self.keyword}: expected {self.expected}"


class _SchemaError(Exception):
    """Shared shape of the two errors below: a tuple of violations, one readable line."""

    violations: tuple[Violation, ...]
    _subject = ""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)[:MAX_VIOLATIONS]
        super().__init__(self.violations)

    def __str__(self) -> str:
        return self._subject + "; ".join(str(violation) for violation in self.violations)


class ArgumentError(_SchemaError):
    """Raised when arguments do not fit a schema (row S44). Holds no argument value."""

    _subject = "invalid arguments: "


class ResultError(_SchemaError):
    """Raised when a callback's result is not JSON or does not fit its return hint."""

    _subject = "invalid result: "


class Mismatch(Exception):
    """Raised by a converter. Internal to this package: callers see ``ArgumentError``.

    Paths are relative to the converter that raised; each container puts its own step in front, so
    that a value that fits costs no path at all.
    """

    def __init__(self, keyword: str, expected: str) -> None:
        super().__init__()
        self.violations = [Violation("", keyword, expected)]

    def under(self, step: str) -> list[Violation]:
        """Return the violations with ``step`` (a name, or ``[3]``) in front of each path."""
        return [Violation(join(step, v.path), v.keyword, v.expected) for v in self.violations]


def several(violations: list[Violation]) -> Mismatch:
    """Return a mismatch that carries these violations, at most ``MAX_VIOLATIONS`` of them."""
    mismatch = Mismatch("", "")
    mismatch.violations = violations[:MAX_VIOLATIONS]
    return mismatch


def join(step: str, rest: str) -> str:
    """Join two parts of a path: ``a`` and ``b`` to ``a.b``, ``a`` and ``[0]`` to ``a[0]``."""
    if not step or not rest or rest.startswith("["):
        return step + rest
    return f"{step}.{rest}"


def shown(name: object) -> str:
    """Return a key or other short text for a message: printable, and cut at ``MAX_NAME``."""
    text = name if isinstance(name, str) else str(name)
    if len(text) > MAX_NAME:
        text = text[:MAX_NAME] + "..."
    return text if text.isprintable() else ascii(text)[1:-1]


def step_of(key: object) -> str:
    """Return the path step of a key of an object: as it is, or quoted where it would mislead."""
    text = shown(key)
    if text and not any(sign in text for sign in ".[]: ;"):
        return text
    return f'["{text}"]'
