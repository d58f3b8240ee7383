"""From a request's head to the variables of PEP 3333. Pure. Floor 2."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

_SEPARATE = frozenset(["CONTENT_TYPE", "CONTENT_LENGTH"])
_KNOWN_MAX = 512
_known: dict[bytes, str | None] = {}


def _variable(name: bytes) -> str | None:
    """Name the variable of a header; none for a name that could pass for another's.

    ``Mcp_Name`` and ``Mcp-Name`` would have one variable; only the second is a usual name.
    """
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in _SEPARATE else "HTTP_" + key


def variables(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the variables of all headers; repeated ones are joined."""
    found: dict[str, str] = {}
    for name, value in headers:
        try:
            key = _known[name]
        except KeyError:
            key = _variable(name)
            if len(_known) < _KNOWN_MAX:  # what clients make up must not fill memory
                _known[name] = key
        if key is None:
            continue
        text = value.decode("latin-1")
        if key in found:
            text = f"{found[key]}{'; ' if key == 'HTTP_COOKIE' else ', '}{text}"
        found[key] = text
    return found


def split_target(target: bytes) -> tuple[str, str, str | None] | None:
    """Return a target's path (decoded), query and host, if it names one; nothing if it is no URL.

    Shapes (RFC 9112, 3.2): ``/path?query``, ``http://host/path?query`` and ``*``.
    """
    host: str | None = None
    if not target.startswith(b"/") and target != b"*":
        scheme, mark, rest = target.partition(b"://")
        if not mark or scheme.lower() not in (b"http", b"https"):
            return None
        authority, slash, rest = rest.partition(b"/")
        if b"?" in authority or not authority:
            return None
        host, target = authority.decode("latin-1"), slash + rest or b"/"
    path, _, query = target.partition(b"?")
    if b"%" in path:
        path = unquote_to_bytes(path)
    return path.decode("latin-1"), query.decode("latin-1"), host
