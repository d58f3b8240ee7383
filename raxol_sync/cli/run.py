"""Running a command: its server, its signals, its end. Floor 5.

Whatever happens the answer is a status, at most one line on stderr, and no process is left: on
Ctrl-C the server gets a moment to end, then it is killed with all that it started.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync._version import __version__
from raxol_sync.cli import arguments, commands
from raxol_sync.cli.arguments import Request, Where
from raxol_sync.cli.failures import ASK_HINT, Failure, UsageError, describe
from raxol_sync.cli.printing import Output
from raxol_sync.client.client import Client
from raxol_sync.client.config import read_config, resolve
from raxol_sync.client.terminal import terminal_elicit
from raxol_sync.errors import (
    MISSING_CLIENT_CAPABILITY,
    InputRequired,
    InvalidSpec,
    MCPError,
    RPCError,
)

HASTE = 0.3  # seconds that a server gets to end after Ctrl-C
_LAST_WAIT = 4.0  # seconds for it to be killed and reaped


def main(words: Sequence[str]) -> int:
    """Run a command and return its exit status: 0, 1, 2, or 128 plus a signal's number."""
    _open_standard_streams()
    output = Output()
    try:
        with _signals():
            return _run(words, output)
    except KeyboardInterrupt as interrupt:
        return 128 + getattr(interrupt, "number", signal.SIGINT)
    except BrokenPipeError:  # the reader, such as head, has all it wanted
        output.abandon()
        return 0
    except (UsageError, InvalidSpec) as error:
        output.error(describe(error))
        return 2
    except (Failure, MCPError) as error:
        output.error(describe(error))
        return 1
    except OSError as error:
        output.abandon()
        output.error(f"cannot write the output: {describe(error)}")
        return 1


def _run(words: Sequence[str], output: Output) -> int:
    command = words[0] if words else ""
    if command in ("-h", "--help", "help"):
        output.text(arguments.HELP)
        return 0
    if command in ("-V", "--version"):
        output.text(f"raxol-sync {__version__}")
        return 0
    if command == "demo":
        return _demo(words[1:], output)
    if command == "serve":
        return _serve(words[1:], output)
    if command not in commands.COMMANDS:
        known = ", ".join(["demo", "serve", *commands.COMMANDS])
        problem = f"there is no command {command!r}" if command else "no command"
        raise UsageError(f"{problem}; there are: {known}; see raxol-sync --help")
    try:
        request, where = arguments.parse(command, words[1:])
    except SystemExit:  # argparse has printed the help
        return 0
    return _ask(request, where, output)


def _demo(words: Sequence[str], output: Output) -> int:
    if words:
        raise UsageError("demo takes no words of its own")
    from raxol_sync.demo import main as run_demo

    status = run_demo()
    output.flush()  # what fails must fail here, not at the interpreter's exit
    return status


def _serve(words: Sequence[str], output: Output) -> int:
    from raxol_sync.cli import serving

    if list(words) in (["-h"], ["--help"]):
        output.text(serving.USAGE)
        return 0
    return serving.serve(words, output)


# ---------------------------------------------------------------- a client command


def _ask(request: Request, where: Where, output: Output) -> int:
    _keep_quiet(request.verbose)
    deadline = Deadline(request.timeout)
    options = _options(where)
    if request.ask:
        options["on_elicit"] = terminal_elicit
    try:
        with _connected(Client(options.pop("name"), **options, **_times(request))) as client:
            asking = commands.Asking(client, request, deadline)
            return commands.COMMANDS[request.command](asking, output)
    except InvalidSpec:  # the words do not describe a server: a wrong usage
        raise
    except MCPError as error:
        line = describe(
            error,
            limit=request.timeout,
            passed={**(options.get("env") or {}), **(options.get("headers") or {})},
        )
        raise Failure(line + _hint(error, request)) from error
    except Failure as error:  # what the server said, with a hint of the command's
        raise Failure(f"{error}{_hint(error.__cause__, request)}") from error


def _hint(error: BaseException | None, request: Request) -> str:
    """Return what helps where the server asks for what nobody can answer."""
    missing = isinstance(error, RPCError) and error.code == MISSING_CLIENT_CAPABILITY
    asks = missing or isinstance(error, InputRequired)
    return ASK_HINT if asks and not request.ask else ""


def _options(where: Where) -> dict[str, Any]:
    """Return the arguments of ``Client`` that say which server."""
    if where.url is not None:
        web = {"headers": where.headers, "allow_http": where.allow_http}
        return {"name": "server", "url": where.url, **web}
    if where.config is None:
        return {
            "name": "server",
            "command": _program(where.command[0]),
            "args": where.command[1:],
            "env": where.env,
        }
    entries = read_config(where.config)
    name = where.server
    names = ", ".join(entries)
    if name is None and len(entries) == 1:
        name = next(iter(entries))
    if name is None:
        raise UsageError(f"{where.config} has several servers: add --server and one of {names}")
    if name not in entries:
        raise UsageError(f"{where.config} has no server {name}; it has {names or 'none'}")
    options = resolve(name, entries[name])
    if "url" in options:
        if where.env:
            raise UsageError(f"--env is for a command, and server {name} is reached by a URL")
        web = {"headers": {**options["headers"], **where.headers}, "allow_http": where.allow_http}
        return {**options, "name": name, **web}
    for option, given in (("--header", where.headers), ("--allow-http", where.allow_http)):
        if given:
            raise UsageError(f"{option} is for a URL, and server {name} is a command")
    return {**options, "name": name, "env": {**options["env"], **where.env}}


def _program(word: str) -> str:
    """Return a command, from beside this Python where PATH has none.

    A virtual environment need not be activated to run what is installed in it.
    """
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable), word)
    if os.path.basename(word) == word and shutil.which(word) is None and shutil.which(beside):
        return beside
    return word


def _times(request: Request) -> dict[str, Any]:
    """Return the client's times: the whole of ``--timeout`` is for the start, if that needs it."""
    limits: dict[str, Any] = {"max_tools": 10_000, "fail_fast": True}
    if request.timeout is not None:
        # A server that is silent to the question which era it speaks is asked again as a legacy
        # one: that must be possible within the time, too.
        limits |= {"init_timeout": request.timeout, "probe_timeout": min(10.0, request.timeout / 2)}
    elif request.ask:
        limits["call_timeout"] = None  # a person may think for as long as they like
    return limits


@contextlib.contextmanager
def _connected(client: Client) -> Iterator[Client]:
    """Start a client and stop it at the end: in haste after an interrupt."""
    try:
        client.start()
        client.await_ready()
        yield client
    except KeyboardInterrupt:
        _ignore_signals()
        client.stop(seconds=HASTE)
        _join_threads()
        raise
    finally:
        try:
            client.stop()
        except KeyboardInterrupt:
            _ignore_signals()
            _join_threads()
            raise


def _join_threads() -> None:
    """Wait for the library's threads: the one that ends a process must not die before it does."""
    deadline = Deadline(_LAST_WAIT)
    for thread in threading.enumerate():
        if thread.name.startswith("raxol-sync-"):
            thread.join(deadline.left())


def _keep_quiet(verbose: bool) -> None:
    """Log nothing to stderr unless that was asked for: an error is one line."""
    logging.getLogger("raxol_sync").addHandler(logging.NullHandler())
    if verbose:
        logging.basicConfig(level=logging.DEBUG, format="%(message)s", stream=sys.stderr)


# ---------------------------------------------------------------- the process


class _Signalled(KeyboardInterrupt):
    """SIGTERM or SIGHUP: the same end as Ctrl-C, with its own status."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the command as Ctrl-C does, where this thread may say so."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise _Signalled(number)

    known = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    previous: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        previous = {number: signal.signal(number, handle) for number in known if number}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _ignore_signals() -> None:
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)


def _open_standard_streams() -> None:
    """Put nothing where a standard stream is closed: its number could become a pipe's of ours."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
