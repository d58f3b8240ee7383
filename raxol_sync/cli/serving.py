"""``raxol-sync serve MODULE_OR_FILE[:SERVER]``: import it, find the server, run it. Floor 5."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from raxol_sync.cli.failures import Failure, UsageError, describe
from raxol_sync.cli.printing import Output
from raxol_sync.errors import SensitiveToolError
from raxol_sync.server.server import Server

USAGE = """usage: raxol-sync serve MODULE_OR_FILE[:SERVER] [--http PORT [OPTIONS]] [--allow-all]

Serve it over stdio until stdin ends; with --http, over HTTP until Ctrl-C.

  --http PORT  serve http://127.0.0.1:PORT/mcp, with a line for each request on stderr;
               0 takes a free port
  --host HOST  listen there, and not on this machine's own address only
  --allowed-host NAME
               also serve requests for that name, such as mcp.example.com; may be repeated
  --allow-all  let everybody do everything, where the server has no authorizers of its own;
               without it a server with sensitive tools and no authorizer is not served, and
               none without authorizers over HTTP"""
ALLOW_ALL = "--allow-all"
_HINT = "give a module or a file, as in: raxol-sync serve server.py:server"


def serve(words: Sequence[str], output: Output) -> int:
    """Serve until stdin closes or SIGINT or SIGTERM comes; return the exit status.

    Raises:
        UsageError: the words name no server.
        Failure: the module cannot be imported, nobody has said who may call its sensitive tools or
            use it over HTTP, or the address cannot be had.
    """
    plan = _plan(words)
    target, name = _split(plan.spec)
    with _stdout_kept():
        server = _find(_load(target), name, target)
    if plan.allow_all:
        server.allow_all_calls()
    try:
        server.require_authorizer()
    except SensitiveToolError as error:
        names = ", ".join(error.tools)
        raise Failure(
            f"sensitive tools need an authorizer: {names}; give the server one, or add {ALLOW_ALL}"
        ) from error
    if plan.port is not None:
        _serve_http(server, plan, plan.port)
        return 0
    if sys.stdin is not None and sys.stdin.isatty():
        output.error(
            f"serving {server.name!r} over stdio, for a client that starts this command; "
            "Ctrl-C ends it"
        )
    server.run()
    return 0


@dataclass(frozen=True)
class _Plan:
    """What the words of the command say. ``port``: serve HTTP there, for ``names`` as well."""

    spec: str
    port: int | None
    host: str
    names: list[str]
    allow_all: bool


def _plan(words: Sequence[str]) -> _Plan:
    found: dict[str, str] = {}
    rest: list[str] = []
    names: list[str] = []
    left = iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option in ("--http", "--host"):
            found[option] = value if equals else next(left, "")
        elif option == "--allowed-host":
            names.append(value if equals else next(left, ""))
        elif option.startswith("-"):
            if word != ALLOW_ALL:
                meant = ": the port goes with --http PORT" if option in ("-p", "--port") else ""
                raise UsageError(
                    f"serve has no option {option}{meant}; see raxol-sync serve --help"
                )
        else:
            rest.append(word)
    if len(rest) != 1:
        raise UsageError(f"serve takes one word: {_HINT}")
    port = None
    if "--http" in found:
        number = found["--http"]
        if not re.fullmatch("[0-9]{1,5}", number) or int(number) > 65535:
            raise UsageError("--http takes a port, as in: --http 8000")
        port = int(number)
    elif "--host" in found or names:
        option = "--host" if "--host" in found else "--allowed-host"
        raise UsageError(f"{option} is for --http PORT, which is missing")
    return _Plan(rest[0], port, found.get("--host", "127.0.0.1"), names, ALLOW_ALL in words)


def _serve_http(server: Server, plan: _Plan, port: int) -> None:
    from raxol_sync.server.http.deployment import DeploymentError
    from raxol_sync.server.http.guard import LOOPBACK
    from raxol_sync.server.http.serving import names_of

    host = plan.host
    try:
        server.run_http(
            host,
            port,
            require_authorization=False if plan.allow_all else None,
            allowed_hosts=[*LOOPBACK, *names_of(host), *plan.names],
        )
    except ValueError as error:  # a name that is none
        raise UsageError(str(error).replace("allowed_hosts", "--allowed-host")) from error
    except DeploymentError as error:
        needs = " and ".join(f"{'an' if name[0] == 'a' else 'a'} {name}" for name in error.missing)
        raise Failure(
            f"nobody has said who may use this server over a network: give it {needs}, "
            f"or add {ALLOW_ALL} for everybody who can reach it"
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"cannot listen at {host}, port {port}: {reason}") from error


def _split(spec: str) -> tuple[str, str | None]:
    r"""Split at the last colon, if a name follows; the one of ``C:\server.py`` is no such."""
    target, colon, name = spec.rpartition(":")
    if colon and name.isidentifier():
        return target, name
    if colon and not name:
        raise UsageError(f"no name after the colon: {_HINT}")
    return spec, None


def _load(target: str) -> ModuleType:
    """Import a file by its path, or a module by its name, with this folder on ``sys.path``."""
    path = Path(target)
    is_file = target.endswith(".py") or os.sep in target or path.is_file()
    if is_file and not path.is_file():
        raise UsageError(f"there is no file {target}; {_HINT}")
    if not is_file and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", target):
        raise UsageError(f"{target!r} is neither a module nor a file; {_HINT}")
    sys.path.insert(0, os.getcwd())
    try:
        return _load_file(path) if is_file else importlib.import_module(target)
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and f"{target}.".startswith(f"{error.name}."):
            raise UsageError(f"there is no module {target} here; {_HINT}") from error
        raise Failure(_import_words(target, error)) from error
    except UsageError:
        raise
    except SystemExit as error:
        reason = "it ended the program; put what runs under: if __name__ == '__main__'"
        raise Failure(f"{target} cannot be imported: {reason}") from error
    except Exception as error:  # whatever a user's module raises ends this command, in one line
        raise Failure(_import_words(target, error)) from error


def _load_file(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.resolve().parent))
    # Not under its own name: a file calendar.py must not stand in for the standard module.
    name = f"served_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file; {_HINT}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are looked up there
    spec.loader.exec_module(module)
    return module


def _import_words(target: str, error: BaseException) -> str:
    """Say where and why an import failed, without a traceback."""
    if isinstance(error, SyntaxError):
        return f"{target} cannot be imported: line {error.lineno}: SyntaxError: {error.msg}"
    places = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and not frame.filename.startswith("<")
    ]
    outside = [frame for frame in places if os.sep + "raxol_sync" + os.sep not in frame.filename]
    where = f"{Path(outside[-1].filename).name}, line {outside[-1].lineno}: " if outside else ""
    kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
    text = str(error) or type(error).__name__
    return f"{target} cannot be imported: {where}{kind}{text}" if kind else describe(error)


def _find(module: ModuleType, name: str | None, target: str) -> Server:
    servers = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    if name is not None:
        if name not in servers:
            there = f"; its servers: {', '.join(servers)}" if servers else ""
            kind = type(vars(module)[name]).__name__ if name in vars(module) else None
            found = f"no {name}" if kind is None else f"a {name}, which is a {kind} and no Server"
            raise UsageError(f"{target} has {found}{there}")
        return servers[name]
    distinct = {id(server): server for server in servers.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if not distinct:
        raise UsageError(f"{target} has no Server at its top level, as in: server = Server('name')")
    names = list(servers)
    raise UsageError(
        f"{target} has several servers ({', '.join(names)}): say which, as in {target}:{names[0]}"
    )


@contextlib.contextmanager
def _stdout_kept() -> Iterator[None]:
    """Send what a module prints while it is imported to stderr: stdout is the protocol's."""
    kept = os.dup(1)
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    try:
        yield
    finally:
        if sys.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
