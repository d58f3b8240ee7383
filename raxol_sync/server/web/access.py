"""The access log: one line for each request. Pure. Floor 2.

No query and no header is ever part of it, since those may hold secrets.
"""

from __future__ import annotations

_LONGEST = 200  # characters of a path


def access_line(client: str, request: tuple[str, str, str] | None, code: int, result: str) -> str:
    """Return the line of a request, given as (method, target, protocol), or of what was none."""
    if request is None:
        return f'{client} "-" {code} {result}'
    method, target, protocol = request
    path = target.partition("#")[0].partition("?")[0]
    scheme, slashes, rest = path.partition("://")
    if slashes and "/" not in scheme:  # a whole URL, which may hold a password
        path = rest[rest.find("/") :] if "/" in rest else "/"
    if len(path) > _LONGEST:
        path = path[:_LONGEST] + "..."
    return f'{client} "{clean(method)} {clean(path)} {protocol}" {code} {result}'


def clean(text: str) -> str:
    """Return a text in which nothing can end a line, move a cursor or close a quotation."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    escaped = text.encode("unicode_escape").decode("ascii")
    return escaped.replace('"', '\\"')
