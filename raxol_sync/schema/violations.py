"""What did not fit: violations, the errors that carry them, and the bounds. Floor 2; pure.

A violation names a path, a JSON Schema keyword and an expectation, and never the value that broke
the rule: arguments may hold secrets (row S44). Names of arguments and keys do appear, cut short,
and so does the kind of a value ("a string").
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

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
    JSON Schema keyword, ``expected`` is what would fit, in words that go on the keyword's sentence.
    ``given`` is the kind of what came, where that is what is wrong. Immutable, so thread-safe.
    """

    path: str
    keyword: str
    expected: str
    given: str = ""

    def __str__(self) -> str:
        return self.told("the value")

    def told(self, whole: str) -> str:
        """Return one sentence: what is wrong with it, and what to give. ``whole``: no path."""
        if self.keyword == "json":
            return self.expected
        subject = f"'{self.path}'" if self.path else whole
        verb = "" if self.expected.startswith(_VERBS) else "be "
        sentence = _SENTENCES.get(self.keyword, f"must {verb}{{}}").format(self.expected)
        return f"{subject} {sentence}{self._instead()}"

    def _instead(self) -> str:
        if not self.given:
            return ""
        return ", and does not fit" if self.given in self.expected else f", not {self.given}"


_VERBS = ("have ", "match ", "hold ", "fit ", "be ")

_SENTENCES = {
    "required": "is missing: give {}",
    "additionalProperties": "is not a known name: {}",
    "unevaluatedProperties": "is not a known name: {}",
    "dependentRequired": "is missing, since others were given: give {}",
    "propertyNames": "is not a key that fits: as a key, give {}",
    "minimum": "is too small: it must be {}",
    "exclusiveMinimum": "is too small: it must be {}",
    "maximum": "is too large: it must be {}",
    "exclusiveMaximum": "is too large: it must be {}",
    "minLength": "is too short: it must have {}",
    "maxLength": "is too long: it must have {}",
    "minItems": "has too few items: it must have {}",
    "maxItems": "has too many items: it must have {}",
    "minProperties": "has too few entries: it must have {}",
    "maxProperties": "has too many entries: it must have {}",
    "uniqueItems": "repeats something: it must have {}",
    "pattern": "does not have the right form: give {}",
    "format": "cannot be read: give {}",
    "contentEncoding": "cannot be decoded: give {}",
    "depth": "is nested too deeply: it must have {}",
    "false": "holds a value that must not be given: leave it out",
    "$ref": "cannot be checked: the schema {}",
    # pydantic's own keywords
    "missing": "is missing: give {}",
    "extra_forbidden": "is not a known name: {}",
}
"""What is said of a broken rule, by keyword. Any other is "must be ...", or has a verb itself."""


class _SchemaError(Exception):
    """Shared shape of the two errors below: a tuple of violations, one readable line."""

    violations: tuple[Violation, ...]
    _subject = ""
    _whole = ""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)[:MAX_VIOLATIONS]
        super().__init__(self.violations)

    def __str__(self) -> str:
        return f"{self._subject}: {self.told(self._whole)}"

    def told(self, whole: str) -> str:
        """Return what is wrong in words; ``whole`` names the value that was checked."""
        return "; ".join(violation.told(whole) for violation in self.violations)


class ArgumentError(_SchemaError):
    """Raised when arguments do not fit a schema (row S44). Holds no argument value."""

    _subject = "invalid arguments"
    _whole = "what was given as arguments"


class ResultError(_SchemaError):
    """Raised when a callback's result is not JSON or does not fit its return hint."""

    _subject = "invalid result"
    _whole = "what was returned"


class Mismatch(Exception):
    """Raised by a converter. Internal to this package: callers see ``ArgumentError``.

    Paths are relative to the converter that raised; each container puts its own step in front, so
    that a value that fits costs no path at all.
    """

    def __init__(self, keyword: str, expected: str, given: str = "") -> None:
        super().__init__()
        self.violations = [Violation("", keyword, expected, given)]

    def under(self, step: str) -> list[Violation]:
        """Return the violations with ``step`` (a name, or ``[3]``) in front of each path."""
        return [replace(v, path=join(step, v.path)) for v in self.violations]


def wrong_type(expected: str, value: object) -> Mismatch:
    """Return the mismatch of a value that is of another kind; the kind is told, not the value."""
    return Mismatch("type", expected, kind_of(value))


def kind_of(value: object) -> str:
    """Return in words what kind of JSON value this is."""
    if isinstance(value, float) and not value.is_integer():
        return "a number with a fraction" if math.isfinite(value) else "NaN or infinity"
    return _KINDS.get(type(value), "something else")


_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def either(words: Iterable[str]) -> str:
    """Return alternatives as a person says them: ``a``, ``a or b``, ``a, b or c``."""
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last


def counted(number: object, units: str) -> str:
    """Return ``1 item``, ``2 items``; ``units`` is a plural."""
    one = units.removesuffix("ies") + "y" if units.endswith("ies") else units.removesuffix("s")
    return f"{number} {one if number == 1 else units}"


def known_names(names: Iterable[str]) -> str:
    """Return what to do about a name that is not known, where these are."""
    listed = [shown(name) for name in names]
    if not listed:
        return "leave it out"
    return "leave it out, or use one of: " + ", ".join(listed[:20]) + _more(listed)


def _more(names: list[str]) -> str:
    return ", ..." if len(names) > 20 else ""


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
