"""RFC 6570 URI templates, level 1: ``{name}`` stands for one percent-encoded value. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(?:\w|%[0-9A-Fa-f]{2})+(?:\.(?:\w|%[0-9A-Fa-f]{2})+)*\Z", re.ASCII)
_SEPARATOR = re.compile("[/?#]")  # what no value holds, unless it is percent-encoded


class TemplateError(ValueError):
    """Raised when a text is no level-1 URI template; the text says why."""


class UriTemplate:
    """A parsed template. Immutable and thread-safe.

    Attributes:
        text: the template as it was given.
        variables: its variables' names, in order.
    """

    __slots__ = ("_literals", "text", "variables")

    def __init__(self, text: str) -> None:
        self.text = text
        names: list[str] = []
        literals: list[str] = []
        end = 0
        for match in _VARIABLE.finditer(text):
            literals.append(_literal(text[end : match.start()]))
            name = match[1]
            if not _NAME.match(name):
                raise TemplateError(
                    f"{{{name}}} in {text!r} is no level-1 expression; only {{name}} is supported"
                )
            if name in names:
                raise TemplateError(f"the variable {name!r} stands twice in {text!r}")
            names.append(name)
            end = match.end()
        literals.append(_literal(text[end:]))
        self.variables = tuple(names)
        self._literals = tuple(literals)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables' values, percent-decoded, if ``uri`` fits; else ``None``.

        No value is empty. Where several readings fit, the first variable is as long as it can be,
        then the second, and so on. A decoded value may hold any character, ``/`` and ``..``
        included.
        """
        # From the right, the last place of each literal. That finds the reading above if there is
        # one: no value holds a separator, so an earlier place never leaves more room. A regular
        # expression would try all places, with a time that a peer could drive up at will.
        first, *rest = self._literals
        if not rest:
            return {} if uri == first else None
        last = rest.pop()
        start, end = len(first), len(uri) - len(last)
        if end <= start or not (uri.startswith(first) and uri.endswith(last)):
            return None
        values: list[str] = []
        for literal in reversed(rest):
            found = uri.rfind(literal, start, end - 1)
            if found <= start:
                return None
            values.append(uri[found + len(literal) : end])
            end = found
        values.append(uri[start:end])
        if any(_SEPARATOR.search(value) for value in values):
            return None
        return dict(zip(self.variables, map(unquote, reversed(values)), strict=True))

    def expand(self, values: dict[str, str]) -> str:
        """Return the URI with each variable replaced; an absent one becomes empty."""
        return _VARIABLE.sub(lambda m: quote(values.get(m[1], ""), safe=""), self.text)


def is_template(text: str) -> bool:
    """Return whether a URI holds a template expression."""
    return "{" in text or "}" in text


def _literal(part: str) -> str:
    if "{" in part or "}" in part:
        raise TemplateError(f"a brace in {part!r} has no partner")
    return part
