"""How a command fails: in one line on stderr, with a status. Floor 5; pure but for the environment.

Status 1: the tool or the server said no, or could not be reached. Status 2: the words of the
command line do not fit.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection

from raxol_sync.cli.printing import one_line
from raxol_sync.errors import MCPError, RequestTimeout, RPCError, ServerExited

ASK_HINT = "; with --ask you can answer here"
MAX_LINE = 500  # characters of an error's line
_MAX_WORDS = 300  # characters of a server's last words in it

# What the library says in Python's words, in those of the command line.
_SPOKEN = (
    ("(init_timeout)", "(--timeout)"),
    ("; give its full path, or put its folder on PATH (env= replaces the server's PATH)",
     "; give its full path, or install it"),
    ("(cwd=)", "(cwd)"),
    (": arguments go in args=", ": write its words without quotes around all of them"),
    ("allow_http=True", "--allow-http"),
    ("check headers= or auth=", "check --header"),
    ("check url=, which is", "check the URL, which is"),
    ("(max_message_bytes)", "(the limit of a message)"),
)  # fmt: skip
_TELLING = re.compile(r"^(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|error)\b")
_NAME = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_NOTHING_NEW = re.compile(r"^Node\.js v[\d.]+$")


class UsageError(Exception):
    """Raised when the words of a command line do not fit; status 2."""


class Failure(Exception):
    """Raised when a command cannot do what it was asked; status 1."""


def describe(
    error: BaseException,
    *,
    limit: float | None = None,
    passed: Collection[str] = (),
) -> str:
    """Return an error as one line that a terminal shows harmlessly.

    Args:
        error: what happened.
        limit: what ``--timeout`` said, in seconds.
        passed: the names of variables that the server was given.
    """
    exited = _server_exited(error)
    if exited is not None:
        text = _exit_words(exited, passed)
    elif isinstance(error, RequestTimeout):
        seconds = error.timeout if limit is None else limit
        text = f"{error.method} was not answered within {seconds:g} s (--timeout)"
    else:
        ours = isinstance(error, (MCPError, UsageError, Failure))
        text = plain(error) if ours else _other(error)
        for words, spoken in _SPOKEN:
            text = text.replace(words, spoken)
    return one_line(text, MAX_LINE)


def plain(error: BaseException) -> str:
    """Return an error's text without what only programs can do about it."""
    return str(error).removesuffix(error.hint) if isinstance(error, RPCError) else str(error)


def _other(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror.lower()}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _server_exited(error: BaseException) -> ServerExited | None:
    for candidate in (error, error.__cause__):
        if isinstance(candidate, ServerExited):
            return candidate
    return None


def _exit_words(error: ServerExited, passed: Collection[str]) -> str:
    """Say that the server ended, the line of its stderr that tells most, and what it may lack."""
    how = str(ServerExited(error.code, hint=error.hint))
    lines = [line.strip() for line in error.stderr.splitlines()]
    lines = [line for line in lines if line and not _NOTHING_NEW.match(line)]
    if not lines:
        return how if error.hint else f"{how} and wrote nothing to stderr"
    telling = [line for line in lines if _TELLING.match(line)]
    last = one_line((telling or lines)[-1], _MAX_WORDS)
    text = f"{how}; its stderr says: {last}" if error.hint else f"{how}: {last}"
    if "No module named 'raxol_sync'" in error.stderr:
        return f"{text}; use a python that has it, such as {sys.executable}"
    held_back = [
        name
        for name in dict.fromkeys(_NAME.findall(error.stderr))
        if name in os.environ and name not in passed
    ]
    if held_back:
        text += f"; {held_back[0]} is set here but not passed on: add --env {held_back[0]}"
    elif len(lines) > 1:
        text += " (--verbose shows all of its stderr)"
    return text
