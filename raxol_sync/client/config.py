"""The ``mcpServers`` JSON of desktop hosts, and the variables in it (row C03). Floor 2.

::

    {"mcpServers": {"files": {"command": "npx", "args": ["-y", "@scope/server", "${HOME}/docs"]}}}

A server has ``command``, ``args``, ``env`` and ``cwd``, or ``url`` and ``headers``; ``type`` and
``disabled`` are honoured, other members ignored. In all these strings ``${VAR}`` and ``${env:VAR}``
stand for a variable of this process, ``${VAR:-default}`` for it or, where it is unset or empty, for
the default. What has another form stays as it is. Everything here may be called by any thread.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import InvalidSpec

Json = dict[str, Any]
Source = str | os.PathLike[str] | Mapping[str, Any]

MAX_SERVERS = 256
MAX_CONFIG_BYTES = 4 * 2**20
_VARIABLE = re.compile(
    r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<has_default>:-(?P<default>[^}]*))?\}"
)
_HTTP_TYPES = ("http", "sse", "streamable-http", "streamableHttp", "streamable_http")


def read_config(source: Source) -> dict[str, Json]:
    """Return the servers of a file, or of the JSON object that such a file holds, by name.

    Those that are ``disabled`` are left out. Nothing is resolved yet.

    Raises:
        InvalidSpec: it cannot be read, or is not of that form. The text holds no value of it.
    """
    data: Any
    if isinstance(source, Mapping):
        where, data = "the configuration", source
    else:
        where = os.fspath(source)
        data = _load(where)
    servers = data.get("mcpServers") if isinstance(data, Mapping) else None
    if not isinstance(servers, Mapping):
        raise InvalidSpec(f'{where} has no object "mcpServers", as in {{"mcpServers": {{...}}}}')
    if len(servers) > MAX_SERVERS:
        raise InvalidSpec(f"{where} has more than {MAX_SERVERS} servers")
    found: dict[str, Json] = {}
    name: Any
    for name, entry in servers.items():
        if not isinstance(name, str) or not name or not isinstance(entry, Mapping):
            raise InvalidSpec(f"{where}: each of mcpServers must be a name with an object")
        if entry.get("disabled") is not True:
            found[name] = dict(entry)
    return found


def resolve(name: str, entry: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Json:
    """Return the arguments of ``Client`` for one server, with its variables filled in.

    Args:
        name: what it is called, for the text of errors.
        entry: one of ``read_config``.
        environ: where variables are looked up; left out, this process's environment.

    Returns:
        ``command``, ``args``, ``env``, ``cwd``, or ``url`` and ``headers``.

    Raises:
        InvalidSpec: it does not describe a server, or needs a variable that is not set. The text
            names the server, the member and the variable, never a value.
    """
    known = os.environ if environ is None else environ
    fill = _Filler(name, known)
    if _kind(name, entry) == "http":
        return {
            "url": fill.string("url", entry.get("url")),
            "headers": fill.mapping("headers", entry.get("headers", {})),
        }
    cwd = entry.get("cwd")
    return {
        "command": fill.string("command", entry.get("command")),
        "args": fill.strings("args", entry.get("args", [])),
        "env": fill.mapping("env", entry.get("env", {})),
        "cwd": None if cwd is None else fill.string("cwd", cwd),
    }


def _load(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        words = (error.strerror or "it cannot be read").lower()
        raise InvalidSpec(f"{path}: {words}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise InvalidSpec(f"{path} is longer than {MAX_CONFIG_BYTES} bytes")
    try:
        return json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidSpec(f"{path} is no JSON: {error.msg} at {place}") from None
    except (UnicodeDecodeError, RecursionError):
        raise InvalidSpec(f"{path} is no JSON: it is not UTF-8, or nested too deeply") from None


def _kind(name: str, entry: Mapping[str, Any]) -> str:
    """Return ``stdio`` or ``http``: what ``type`` says, or else what there is."""
    said = entry.get("type")
    if said is not None and said != "stdio" and said not in _HTTP_TYPES:
        raise InvalidSpec(f"server {name!r}: its type must be stdio, http or sse")
    has_command, has_url = "command" in entry, "url" in entry
    if has_command == has_url:
        both = "both" if has_command else "neither"
        raise InvalidSpec(f"server {name!r} needs command or url, and has {both}")
    kind = "http" if has_url else "stdio"
    if said is not None and (said != "stdio") != has_url:
        wanted = "command" if said == "stdio" else "url"
        raise InvalidSpec(f"server {name!r}: its type wants {wanted}, which it does not have")
    return kind


class _Filler:
    """Checks the strings of one server and fills variables in."""

    def __init__(self, server: str, environ: Mapping[str, str]) -> None:
        self._server = server
        self._environ = environ

    def string(self, member: str, value: object) -> str:
        """Return a string with its variables filled in."""
        if not isinstance(value, str) or not value:
            raise InvalidSpec(f"server {self._server!r}: {member} must be a string, not empty")
        return self._fill(member, value)

    def strings(self, member: str, values: object) -> list[str]:
        """Return a list of strings, likewise."""
        if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
            raise InvalidSpec(f"server {self._server!r}: {member} must be a list of strings")
        return [self._fill(member, value) for value in values]

    def mapping(self, member: str, values: object) -> dict[str, str]:
        """Return an object of strings, likewise."""
        if not isinstance(values, Mapping):
            raise InvalidSpec(f"server {self._server!r}: {member} must be an object of strings")
        for key, value in values.items():
            if not isinstance(value, str):
                raise InvalidSpec(f"server {self._server!r}: {member}: {key} must be a string")
        return {key: self._fill(f"{member}: {key}", value) for key, value in values.items()}

    def _fill(self, member: str, text: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            variable, default = match["name"], match["default"]
            value = self._environ.get(variable)
            if value is not None and (value or match["has_default"] is None):
                return value
            if match["has_default"] is None:
                raise InvalidSpec(
                    f"server {self._server!r}: {member} needs the environment variable "
                    f"{variable}, which is not set; set it, or write ${{{variable}:-default}}"
                )
            return str(default)

        return _VARIABLE.sub(value_of, text)
