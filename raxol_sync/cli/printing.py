r"""What a person sees: text without terminal tricks, tables, summaries of binary data. Floor 5.

Whatever a server sent may hold escape sequences that rewrite the screen, or characters that turn
the direction of text around. In text they are shown as ``\x1b``; in JSON they are escaped as JSON
does. Everything but ``Output`` is pure.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from raxol_sync.content import (
    Audio,
    Content,
    Contents,
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
)

# Controls but tab and newline; marks that are invisible or turn text around; line separators that
# are none to a terminal; half characters; invisible tags. Joiners stay: emoji need them.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_MAX_CELL = 10_000  # characters of a table's cell
_IN_JSON = re.compile(_HARMFUL.pattern.replace("\x00-\x08\x0b-\x1f", ""))


def safe(text: str) -> str:
    """Return text that a terminal shows as it is: what it would act on is escaped.

    Tabs and newlines stay; the line ends of Windows become newlines.
    """
    return _HARMFUL.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """Return text as one harmless line of at most ``limit`` characters."""
    line = safe(" ".join(text[: 4 * limit].split()))
    return line if len(line) <= limit else line[: limit - 3] + "..."


def to_json(value: object) -> str:
    """Return a value as an indented JSON document that a terminal shows harmlessly."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _IN_JSON.sub(_json_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


# ---------------------------------------------------------------- content


def content_text(item: Content) -> str:
    """Return a content item as text; of binary data, its type and size."""
    if isinstance(item, Text):
        return safe(item.text)
    if isinstance(item, (Image, Audio)):
        kind = "image" if isinstance(item, Image) else "audio"
        return _binary(kind, item.mime_type, item.data)
    if isinstance(item, ResourceLink):
        return f"[resource link {one_line(item.name, 80)}: {one_line(item.uri, 400)}]"
    if isinstance(item, EmbeddedResource):
        return _resource(item.uri, item.text, item.data, item.mime_type)
    return f"[{one_line(str(item.raw.get('type')), 80)}: of a type that is not known here]"


def contents_text(item: Contents) -> str:
    """Return a resource's contents as text; of binary data, its type and size."""
    if item.text is not None:
        return safe(item.text)
    return _binary("binary", item.mime_type, item.data or b"")


def _resource(uri: str, text: str | None, data: bytes | None, mime_type: str | None) -> str:
    if text is not None:
        return f"[resource {one_line(uri, 400)}]\n{safe(text)}"
    return _binary(f"resource {uri}", mime_type, data or b"")


def _binary(kind: str, mime_type: str | None, data: bytes) -> str:
    shown = one_line(mime_type or "of no type", 80)
    return f"[{one_line(kind, 400)} {shown}, {len(data)} bytes]"


# ---------------------------------------------------------------- tables


def table(rows: Iterable[Sequence[str]], width: int | None) -> list[str]:
    """Return the lines of a table without borders.

    Args:
        rows: cells; each becomes harmless and loses its line ends.
        width: how many columns the terminal has; cells are wrapped to fit. ``None``: never.
    """
    cells = [[one_line(cell, _MAX_CELL) for cell in row] for row in rows]
    if not cells:
        return []
    widths = [max(columns(row[n]) for row in cells) for n in range(len(cells[0]))]
    widths = [min(natural, 60) for natural in widths] if width is None else _fit(widths, width)
    lines: list[str] = []
    for row in cells:
        wrapped = [
            [cell] if width is None else wrap(cell, limit)
            for cell, limit in zip(row, widths, strict=True)
        ]
        for n in range(max(len(part) for part in wrapped)):
            parts = [part[n] if n < len(part) else "" for part in wrapped]
            padded = [
                part + " " * (limit - columns(part))
                for part, limit in zip(parts, widths, strict=True)
            ]
            lines.append("  ".join(padded).rstrip())
    return lines


def _fit(natural: list[int], width: int) -> list[int]:
    """Share a terminal's columns out: the first cells get what they want, up to a third each."""
    left = max(width - 1, 40) - 2 * (len(natural) - 1)
    widths = []
    for n, wanted in enumerate(natural):
        share = left if n == len(natural) - 1 else max(8, left // 3)
        widths.append(max(1, min(wanted, share)))
        left = max(8, left - widths[-1])
    return widths


def wrap(text: str, width: int) -> list[str]:
    """Return a line broken into lines of at most ``width`` columns, at spaces where there are."""
    lines, line, used = [], "", 0
    for word in text.split(" "):
        size = columns(word)
        if line and used + 1 + size <= width:
            line, used = f"{line} {word}", used + 1 + size
            continue
        if line:
            lines.append(line)
        while size > width:
            head = _head(word, width)
            lines.append(head)
            word = word[len(head) :]
            size = columns(word)
        line, used = word, size
    return [*lines, line] if line or not lines else lines


def _head(word: str, width: int) -> str:
    used = 0
    for n, sign in enumerate(word):
        used += columns(sign)
        if used > width and n:
            return word[:n]
    return word


def columns(text: str) -> int:
    """Return how many columns a terminal needs: two for wide letters, none for combining ones."""
    if text.isascii():
        return len(text)
    import unicodedata  # only where text is not ASCII

    used = 0
    for sign in text:
        if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
            continue
        used += 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1
    return used


# ---------------------------------------------------------------- output


class Output:
    """Stdout and stderr of a command, which may be closed, a pipe, or of a small encoding."""

    def __init__(self) -> None:
        self._out: TextIO | None = sys.stdout
        self._err: TextIO | None = sys.stderr
        for stream in (self._out, self._err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:  # no letter is ever a reason to fail
                reconfigure(errors="backslashreplace")

    @property
    def width(self) -> int | None:
        """How many columns stdout has; ``None`` when it is no terminal."""
        if self._out is None or not self._out.isatty():
            return None
        import shutil

        return shutil.get_terminal_size().columns

    def text(self, text: str) -> None:
        """Write harmless text and a line end to stdout, at once."""
        if self._out is not None:
            self._out.write(text if text.endswith("\n") else text + "\n")
            self.flush()

    def flush(self) -> None:
        """Write what waits in stdout's buffer."""
        if self._out is not None:
            self._out.flush()

    def json(self, value: Any) -> None:
        """Write one JSON document to stdout."""
        self.text(to_json(value))

    def error(self, text: str) -> None:
        """Write a harmless line to stderr; there may be nobody to read it."""
        if self._err is not None:
            try:
                self._err.write(f"raxol-sync: {text}\n")
                self._err.flush()
            except OSError:
                return

    def abandon(self) -> None:
        """Forget what could not be written: the interpreter must not try again at its exit."""
        if self._out is not None:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.close(nothing)
