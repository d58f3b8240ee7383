"""Docstrings in Google, NumPy or Sphinx style, read for parameter texts. Floor 2; pure.

Never raises: text that fits no style is all description.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_PARAMETERS = {
    "args", "arguments", "parameters", "params", "keyword args", "keyword arguments",
    "other parameters", "attributes",
}  # fmt: skip
_DROPPED = {"returns", "return", "yields", "yield"}
_HEADERS = _PARAMETERS | _DROPPED
_OTHERS = {
    "raises", "raise", "examples", "example", "notes", "note", "warnings", "warning", "warns",
    "see also", "references", "todo",
}  # fmt: skip
_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\((?P<kind>[^\n]*?)\))?\s*:(?:\s+|$)(?P<text>.*)")
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX = re.compile(r":(?P<role>\w+)(?:\s+(?P<words>[^:\n]+?))?\s*:(?:\s+|$)(?P<text>.*)")
_SPHINX_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_SPHINX_DROPPED = {"type", "return", "returns", "rtype", "yield", "yields"}


@dataclass
class Docstring:
    """What a docstring says: text without its parameter and return sections; text per parameter."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(text: str) -> Docstring:
    """Return the parsed docstring; of ``""``, an empty one."""
    lines = inspect.cleandoc(text).splitlines() if text else []
    result = Docstring()
    kept: list[str] = []
    index = 0
    while index < len(lines):
        header, body = _header(lines, index)
        sphinx = _SPHINX.fullmatch(lines[index].strip())
        if header in _HEADERS:
            index = _read_section(lines, index, body, header in _PARAMETERS, result)
        elif sphinx is not None and sphinx["role"] in _SPHINX_PARAMETERS | _SPHINX_DROPPED:
            index = _read_field(lines, index, sphinx, result)
        else:
            kept.append(lines[index])
            index += 1
    result.description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return result


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _header(lines: list[str], index: int) -> tuple[str, int]:
    """Return the name of the section that starts at ``index`` and where its body starts."""
    name = lines[index].strip().lower()
    if index + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[index + 1]):
        known = name.rstrip(":") in _HEADERS | _OTHERS
        return (name.rstrip(":"), index + 2) if known else ("", 0)
    if name.endswith(":") and name[:-1].strip() in _HEADERS | _OTHERS:
        return name[:-1].strip(), index + 1
    return "", 0


def _read_section(lines: list[str], index: int, body: int, named: bool, result: Docstring) -> int:
    """Read one section into ``result``; return the index after it."""
    base = _indent(lines[index])
    numpy = body == index + 2
    end = body
    while end < len(lines):
        line = lines[end]
        if line.strip():
            if _header(lines, end)[0] and _indent(line) <= base:
                break
            # Google bodies are indented; NumPy bodies stand below their header, and end with a
            # paragraph only where a blank line comes before text that is no entry.
            if not numpy and _indent(line) <= base:
                break
            if numpy and not lines[end - 1].strip() and _starts_prose(lines, end, base):
                break
        end += 1
    if named:
        (_read_numpy if numpy else _read_google)(lines[body:end], result)
    return end


def _starts_prose(lines: list[str], index: int, base: int) -> bool:
    line = lines[index]
    return _indent(line) <= base and _NUMPY_ENTRY.fullmatch(line.strip()) is None


def _read_google(lines: list[str], result: Docstring) -> None:
    base = min((_indent(line) for line in lines if line.strip()), default=0)
    current = ""
    for line in lines:
        entry = _ENTRY.fullmatch(line.strip())
        if entry is not None and _indent(line) <= base:
            current = entry["name"]
            result.parameters[current] = entry["text"].strip()
        elif current and line.strip():
            _continue(result, current, line)


def _read_numpy(lines: list[str], result: Docstring) -> None:
    base = min((_indent(line) for line in lines if line.strip()), default=0)
    current: list[str] = []
    for line in lines:
        entry = _NUMPY_ENTRY.fullmatch(line.strip())
        if _indent(line) <= base and line.strip():
            names = entry["names"] if entry is not None else ""
            current = [name.strip().lstrip("*") for name in names.split(",") if name.strip()]
        elif line.strip():
            for name in current:
                _continue(result, name, line)


def _read_field(lines: list[str], index: int, match: re.Match[str], result: Docstring) -> int:
    """Read one Sphinx field and its indented continuation; return the index after them."""
    base = _indent(lines[index])
    name = ""
    if match["role"] in _SPHINX_PARAMETERS and match["words"]:
        name = match["words"].split()[-1].lstrip("*\\")  # ":param int count:" gives a type too
        result.parameters[name] = match["text"].strip()
    index += 1
    while index < len(lines) and lines[index].strip() and _indent(lines[index]) > base:
        if name:
            _continue(result, name, lines[index])
        index += 1
    return index


def _continue(result: Docstring, name: str, line: str) -> None:
    result.parameters[name] = f"{result.parameters.get(name, '')} {line.strip()}".strip()
