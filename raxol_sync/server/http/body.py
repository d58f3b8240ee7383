"""Reading a request's body within bounds. Floor 1.

The body is what ``CONTENT_LENGTH`` says, or, where the host says that it ends its input itself
(``wsgi.input_terminated``), all that comes: chunked bodies have no length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_CHUNK = 64 * 1024  # bytes for one read


class Unread(NamedTuple):
    """Why a body could not be read: the status that answers it, and words."""

    status: int
    reason: str


def read_body(environ: Mapping[str, Any], limit: int) -> bytes | Unread:
    """Return the request's body, at most ``limit`` bytes. May block as long as the host lets it."""
    raw = environ.get("CONTENT_LENGTH") or ""
    if not raw:
        return _without_length(environ, limit)
    if not (raw.isascii() and raw.isdigit()):
        return Unread(400, "Content-Length is not a number")
    digits = raw.lstrip("0")
    if len(digits) > 18 or int(digits or "0") > limit:
        return _too_large(limit)
    wanted = int(digits or "0")
    data = _read(environ["wsgi.input"], wanted)
    if isinstance(data, bytes) and len(data) < wanted:
        return Unread(400, f"the body ended after {len(data)} of {wanted} bytes")
    return data


def _without_length(environ: Mapping[str, Any], limit: int) -> bytes | Unread:
    if environ.get("wsgi.input_terminated"):
        data = _read(environ["wsgi.input"], limit + 1)
        return _too_large(limit) if isinstance(data, bytes) and len(data) > limit else data
    if environ.get("HTTP_TRANSFER_ENCODING"):
        return Unread(411, "this host cannot read a body without Content-Length")
    return b""


def _too_large(limit: int) -> Unread:
    return Unread(413, f"the body is longer than {limit} bytes")


def _read(source: Any, wanted: int) -> bytes | Unread:
    parts: list[bytes] = []
    try:
        while wanted > 0:
            data = source.read(min(wanted, _CHUNK) if parts else min(wanted, 16 * _CHUNK))
            if not data:
                break
            parts.append(data)
            wanted -= len(data)
    except TimeoutError:
        return Unread(408, "the body did not come in time")
    except Exception as error:  # each host has its own for a body that breaks off
        status = getattr(error, "code", None)
        known = status if status in (400, 408, 413) else 400
        return Unread(known, f"the body could not be read ({type(error).__name__})")
    return parts[0] if len(parts) == 1 else b"".join(parts)
