"""The words of a command line: which command, its options, which server. Floor 5.

What stands after the first ``--`` is the server's command, untouched. Before it options and words
may be mixed. ``UsageError`` for everything that does not fit.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from raxol_sync.cli.failures import UsageError

SERVER_WORDS = "-- COMMAND ARGS... | URL | --config FILE [--server NAME]"
_OPTIONS = (
    "[--json] [--timeout SECONDS] [--env NAME=VALUE]... [--header NAME:VALUE]... [--allow-http] "
    "[--verbose]"
)
ASKING = ("call", "read", "prompt")  # during these a server may ask something

# Command -> its own words, what it does.
CLIENT_COMMANDS = {
    "tools": ("", "list a server's tools and their arguments"),
    "call": (
        "TOOL [NAME=VALUE]...",
        "call a tool; a value is JSON where the tool's schema takes it",
    ),
    "read": ("URI", "read a resource"),
    "prompt": ("NAME [NAME=VALUE]...", "render a prompt"),
    "ping": ("", "ask for a sign of life"),
    "status": ("", "tell what a server speaks, and name all that it offers"),
}

HELP = f"""\
usage: raxol-sync COMMAND ...

  raxol-sync demo                             see it at work
  raxol-sync serve MODULE_OR_FILE[:SERVER]    serve over stdio, for a client that starts this
  raxol-sync serve MODULE_OR_FILE --http 8000 serve over HTTP
  raxol-sync tools  {SERVER_WORDS}
  raxol-sync call TOOL a=1 b=2  -- COMMAND ARGS...
  raxol-sync read URI           -- COMMAND ARGS...
  raxol-sync prompt NAME a=b    -- COMMAND ARGS...
  raxol-sync ping | status      -- COMMAND ARGS...

COMMAND ARGS... is what starts the server: python server.py, or npx -y @scope/server.
URL is where one is served over HTTP: raxol-sync tools http://127.0.0.1:8000/mcp
Options of one command: raxol-sync COMMAND --help. The version: raxol-sync --version.
Status: 0, or 1 if the tool or the server said no or could not be reached, or 2 for a wrong usage.
"""


@dataclass(frozen=True)
class Request:
    """What a client command was told; not which server it goes to.

    Attributes:
        command: one of ``CLIENT_COMMANDS``.
        subject: the tool's or prompt's name, the resource's URI, or empty.
        pairs: the NAME=VALUE words, as typed.
        json: print the answer as JSON.
        timeout: for the whole command, in seconds, or ``None``.
        verbose: log to stderr, what the server writes to its own included.
        ask: answer what the server asks at this terminal.
    """

    command: str
    subject: str
    pairs: dict[str, str] = field(repr=False)
    json: bool
    timeout: float | None
    verbose: bool
    ask: bool = False


@dataclass(frozen=True)
class Where:
    """Which server a command goes to: one of ``command``, ``url`` and ``config``.

    ``allow_http``: a URL may be plain http to another machine.
    """

    command: tuple[str, ...] = field(default=(), repr=False)
    url: str | None = field(default=None, repr=False)
    config: str | None = None
    server: str | None = None
    env: dict[str, str] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    allow_http: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parse(command: str, words: Sequence[str]) -> tuple[Request, Where]:
    """Return what a client command's words say.

    Raises:
        UsageError: they do not fit.
        SystemExit: ``--help`` was among them, and is printed.
    """
    own: list[str] = list(words)
    program: tuple[str, ...] = ()
    if "--" in own:
        at = own.index("--")
        own, program = own[:at], tuple(own[at + 1 :])
        if not program:
            raise UsageError("after -- comes the server's command, as in: -- python server.py")
        _refuse_script(command, program)
    found = _parser(command).parse_intermixed_args(own)
    rest: list[str] = list(found.rest)
    subject = _subject(command, rest)
    url = rest.pop() if rest and _is_url(rest[-1]) else None
    if len(program) == 1 and _is_url(program[0]):
        url, program = program[0], ()
    takes_pairs = command in ("call", "prompt")
    if rest and _lacks_scheme(rest[-1]):
        raise UsageError(
            f"{rest[-1]!r} looks like a URL without its scheme: write http:// in front, "
            "or https:// for another machine"
        )
    if rest and not takes_pairs:
        python = "python " if _is_script(rest[0]) else ""
        raise UsageError(
            f"unexpected {rest[0]!r}; the server's command comes after --, as in: "
            f"raxol-sync {command} -- {python}{' '.join(rest[:2])}"
        )
    request = Request(
        command,
        subject=subject,
        pairs=_pairs(rest),
        json=found.json,
        timeout=found.timeout,
        verbose=found.verbose,
        ask=getattr(found, "ask", False),
    )
    variables, headers = _env(found.env), _headers(found.header)
    where = Where(program, url, found.config, found.server, variables, headers, found.allow_http)
    _check(where, command)
    return request, where


def _parser(command: str) -> argparse.ArgumentParser:
    words, purpose = CLIENT_COMMANDS[command]
    parser = _Parser(
        prog=f"raxol-sync {command}",
        usage=f"raxol-sync {command} {words}{' ' if words else ''}"
        f"{'[--ask] ' if command in ASKING else ''}{_OPTIONS} {SERVER_WORDS}",
        description=purpose[0].upper() + purpose[1:] + ".",
        allow_abbrev=False,
    )
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    option = parser.add_argument
    option("--json", action="store_true", help="print the answer as it came, one JSON document")
    text = "for the whole command (left out: 60 for the start, 30 for each answer)"
    option("--timeout", type=_seconds, metavar="SECONDS", help=text)
    text = "a variable for the server, which gets few of yours; NAME alone passes yours on"
    option("--env", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "a header for a server that is reached by a URL"
    option("--header", action="append", default=[], metavar="NAME:VALUE", help=text)
    text = "a URL may be plain http to another machine; what is sent can be read on the way"
    option("--allow-http", action="store_true", help=text)
    option("--config", metavar="FILE", help="a file with mcpServers, as desktop hosts have it")
    option("--server", metavar="NAME", help="which server of the file; left out: its only one")
    if command in ASKING:
        text = "answer what the server asks at this terminal; without a limit of time"
        option("--ask", action="store_true", help=text)
    text = "log to stderr, with what the server writes to its own"
    option("--verbose", action="store_true", help=text)
    return parser


def _subject(command: str, rest: list[str]) -> str:
    """Take the word that says of what the command is, if it has one."""
    wanted = CLIENT_COMMANDS[command][0].split()
    if not wanted:
        return ""
    if not rest:
        raise UsageError(f"which {wanted[0]}? See raxol-sync {command} --help")
    return rest.pop(0)


def _check(where: Where, command: str) -> None:
    given = [bool(where.command), where.url is not None, where.config is not None]
    if sum(given) > 1:
        raise UsageError("name one server: by a command after --, by a URL, or by --config")
    if sum(given) == 0:
        raise UsageError(
            f"which server? Add its command after --, as in: raxol-sync {command} ... "
            "-- python server.py; or its URL, as in: http://127.0.0.1:8000/mcp; or --config FILE"
        )
    if where.server is not None and where.config is None:
        raise UsageError("--server names a server of a --config FILE; there is none")
    if where.headers and where.command:
        raise UsageError("--header is for a URL: a command has no headers; it may want --env")
    if where.allow_http and where.command:
        raise UsageError("--allow-http is for a URL, and the server is a command")


def _refuse_script(command: str, program: Sequence[str]) -> None:
    """Refuse a Python file in the place of a program, unless it can be one."""
    word = program[0]
    if _is_script(word) and not (os.path.dirname(word) and os.access(word, os.X_OK)):
        more = " ..." if program[1:] else ""
        raise UsageError(
            f"{word!r} is a Python file: start it with python, as in: "
            f"raxol-sync {command} -- python {word}{more}"
        )


def _is_script(word: str) -> bool:
    return word.endswith(".py") and os.path.isfile(word)


def _is_url(word: str) -> bool:
    return word.lower().startswith(("http://", "https://"))


def _lacks_scheme(word: str) -> bool:
    """Whether a word is a host with a port or a path, and nothing that may be a secret."""
    return re.fullmatch(r"[\w.-]+:[0-9]{1,5}(/[\w./-]*)?|[\w-]+(\.[\w-]+)+/mcp/?", word) is not None


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(
                f"{word!r} is not NAME=VALUE (quote a value that has spaces; "
                "the server's command comes after --)"
            )
        if name in pairs:
            raise UsageError(f"{name} is given twice")
        pairs[name] = value
    return pairs


def _env(words: Sequence[str]) -> dict[str, str]:
    """Return the variables for a server. No error repeats a value."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name:
            raise UsageError("--env wants NAME=VALUE, or NAME to pass on one of yours")
        if not equals:
            if name not in os.environ:
                raise UsageError(f"--env {name}: there is no such variable to pass on")
            value = os.environ[name]
        found[name] = value
    return found


def _headers(words: Sequence[str]) -> dict[str, str]:
    """Return the headers for a server. No error repeats a value."""
    found: dict[str, str] = {}
    for word in words:
        name, colon, value = word.partition(":")
        if not colon or not name.strip():
            raise UsageError(
                "--header wants NAME:VALUE, as in: --header 'authorization: Bearer ...'"
            )
        found[name.strip()] = value.strip()
    return found


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError("it must be a number of seconds above 0")
    return seconds
