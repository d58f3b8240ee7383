"""What a client was told about its server, checked before anything starts (row C01). Floor 2.

No text here holds an argument or an environment value: those may be secrets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from raxol_sync._deadline import check_count, check_seconds
from raxol_sync.errors import InvalidSpec
from raxol_sync.protocol.versions import SUPPORTED

T = TypeVar("T")
CONCURRENCY = ("stateless", "pooled", "serialized")


def check_name(name: object) -> None:
    """A client's name is a string that is not empty."""
    if not isinstance(name, str) or not name:
        raise InvalidSpec("a client needs a name: a string that is not empty")


def check_target(name: str, command: object, server: object, url: object = None) -> None:
    """Exactly one of ``command``, ``url`` and ``server`` says what to connect to."""
    named = (("command", command), ("url", url), ("server", server))
    given = [word for word, value in named if value is not None]
    if not given and name.lower().startswith(("http://", "https://")):
        # Not told: a URL may hold secrets.
        raise InvalidSpec(
            "a client needs a name before its server, and this one looks like a URL: write "
            "Client('any name', url=...)"
        )
    if len(given) != 1:
        found = " and ".join(f"{word}=" for word in given) or "none"
        raise InvalidSpec(
            f"client {name!r} needs exactly one of command=, url= and server=, not {found}"
        )
    if command is not None and (not isinstance(command, (str, os.PathLike)) or not str(command)):
        raise InvalidSpec(
            f"client {name!r}: command= must name a program, its arguments go in args="
        )
    if isinstance(server, type):
        raise InvalidSpec(
            f"client {name!r}: server= must be an instance, as in {server.__name__}(...), and is "
            "the class"
        )
    if isinstance(server, (str, os.PathLike)):
        raise InvalidSpec(
            f"client {name!r}: server= takes a server object of this process; a program goes in "
            "command=, an address in url="
        )
    if server is not None:
        missing = [word for word in ("subscribe", "request") if not hasattr(server, word)]
        if missing:
            raise InvalidSpec(f"client {name!r}: server= has no {' and no '.join(missing)}")


def check_args(name: str, args: object) -> tuple[str, ...]:
    """Return a command's arguments."""
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise InvalidSpec(f"client {name!r}: args= must be a list of strings")
    if not all(isinstance(arg, (str, os.PathLike)) for arg in args):
        raise InvalidSpec(f"client {name!r}: each of args= must be a string")
    found = tuple(os.fspath(arg) for arg in args)
    if any("\0" in arg for arg in found):
        raise InvalidSpec(f"client {name!r}: an argument holds a NUL character")
    return found


def check_env(name: str, env: object) -> dict[str, str] | None:
    """Return a command's environment. The text of an error names variables, never their values."""
    if env is None:
        return None
    if not isinstance(env, Mapping):
        raise InvalidSpec(f"client {name!r}: env= must be a mapping of strings")
    for key, value in env.items():
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            raise InvalidSpec(f"client {name!r}: env= has a name that is no variable's")
        if not isinstance(value, str) or "\0" in value:
            raise InvalidSpec(f"client {name!r}: env= {key!r} must be a string without NUL")
    return dict(env)


def check_choice(name: str, word: str, value: str | None, choices: Sequence[str]) -> None:
    """A value is one of ``choices``, or ``None``."""
    if value is not None and value not in choices:
        raise InvalidSpec(f"client {name!r}: {word}= must be one of {', '.join(choices)}")


def check_version(name: str, version: str | None) -> None:
    """A revision is one that this package speaks, or ``None``."""
    check_choice(name, "protocol_version", version, SUPPORTED)


def check_extensions(name: str, given: object) -> None:
    """``InvalidSpec`` for extensions that are no mapping of prefixed names to settings."""
    if given is None:
        return
    fits = isinstance(given, Mapping) and all(
        isinstance(key, str) and "/" in key.strip("/") and isinstance(value, Mapping)
        for key, value in given.items()
    )
    if not fits:
        raise InvalidSpec(
            f"client {name!r}: extensions= must map names such as 'com.example/thing' to mappings"
        )


def check_handler(name: str, word: str, handler: Callable[..., T] | None) -> None:
    """A handler is callable, or ``None``."""
    if handler is not None and not callable(handler):
        raise InvalidSpec(f"client {name!r}: {word}= must be callable")


def check_numbers(name: str, counts: Mapping[str, Any], seconds: Mapping[str, Any]) -> None:
    """Counts are whole numbers of at least 1 (``queue_limit``: 0), seconds numbers or ``None``."""
    try:
        for word, value in counts.items():
            check_count(word, value, least=0 if word == "queue_limit" else 1)
        for word, value in seconds.items():
            check_seconds(word, value)
    except (TypeError, ValueError) as error:
        raise InvalidSpec(f"client {name!r}: {error}") from error
