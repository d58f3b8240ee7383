"""An application's status and headers, checked and as bytes. Pure but for the clock. Floor 2.

What an application says can only ever become one head: a line break in a value, a status that is
none, or a header that belongs to the connection is an error of the application's (PEP 3333).
"""

from __future__ import annotations

import re
import time
from email.utils import formatdate

_STATUS = re.compile(r"[1-9]\d\d [ \t\x21-\x7e\x80-\xff]*")
_FIELDS = re.compile(r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [\t\x20-\x7e\x80-\xff]*\r\n)*")
_LENGTH = re.compile(r"\d{1,18}")
_OF_THE_CONNECTION = frozenset(
    ["keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"]
)
_BARE = frozenset([204, 304])  # answers that have no body
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_date: tuple[int, str] = (0, "")


class Head:
    """The beginning of an answer.

    Attributes:
        code: the status.
        length: the Content-Length that the application gave.
        close: it wants the connection to end.
        bare: an answer with this status has no body.
    """

    __slots__ = ("_dated", "_lines", "bare", "close", "code", "length")

    def __init__(self, status: object, headers: object) -> None:
        """Check and keep them.

        Raises:
            ValueError: they are no status and headers of one answer; the words name the header.
            TypeError: they have wrong types.
        """
        if type(status) is not str or not isinstance(headers, list):
            raise TypeError("start_response takes a str and a list of pairs of str")
        if _STATUS.fullmatch(status) is None:
            raise ValueError('a status is three digits, a space and a reason, as in "200 OK"')
        self.code = int(status[:3])
        if self.code < 200:
            raise ValueError("an application answers with a final status, 200 or above")
        self.bare = self.code in _BARE
        self.length: int | None = None
        self.close = False
        self._dated = False
        lines = [f"{name}: {value}\r\n" for name, value in headers if self._note(name, value)]
        text = "".join(lines)
        if _FIELDS.fullmatch(text) is None or text.count("\n") != len(lines):
            raise ValueError(f"no header that can be sent: {_wrong(lines)}")
        self._lines = f"HTTP/1.1 {status}\r\n{text}"

    def _note(self, name: object, value: object) -> bool:
        """Keep what a header means for the connection; return whether it is to be sent as it is."""
        if type(name) is not str or type(value) is not str:
            raise TypeError("a header is a pair of str")
        lower = name.lower()
        if lower == "content-length":
            if _LENGTH.fullmatch(value) is None or self.length is not None:
                raise ValueError("a Content-Length is one number")
            self.length = int(value)
        elif lower == "date":
            self._dated = True
        elif lower == "connection":
            if value.lower() != "close":
                raise ValueError("Connection belongs to the server; only close may be asked for")
            self.close = True
            return False
        elif lower in _OF_THE_CONNECTION:
            raise ValueError(f"{lower} belongs to the connection, and so to the server")
        return True

    def encode(self, *more: str) -> bytes:
        """Return the head as bytes, with more header lines and the date."""
        lines = [self._lines, *more]
        if not self._dated:
            lines.append(f"Date: {_now()}\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("latin-1")


def _wrong(lines: list[str]) -> str:
    for line in lines:
        if _FIELDS.fullmatch(line) is None or line.count("\n") != 1:
            name = line.partition(":")[0]
            return ascii(name[:50])
    return "?"


def _now() -> str:
    """Return the date of this second."""
    global _date
    second = int(time.time())
    if _date[0] != second:
        _date = (second, formatdate(second, usegmt=True))
    return _date[1]


def canned(status: str, reason: str, *more: str) -> bytes:
    """Return a short answer of the server's own, after which the connection ends."""
    body = f"{reason}\n".encode("ascii", "backslashreplace")
    head = Head(status, [("Content-Type", "text/plain; charset=utf-8")])
    return head.encode(f"Content-Length: {len(body)}\r\n", "Connection: close\r\n", *more) + body
