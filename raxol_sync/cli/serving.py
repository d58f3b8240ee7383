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
from pathlib import Path
from types import ModuleType

from raxol_sync.cli.failures import Failure, UsageError, describe
from raxol_sync.cli.printing import Output
from raxol_sync.errors import SensitiveToolError
from raxol_sync.server.server import Server

USAGE = """usage: raxol-sync serve MODULE_OR_FILE[:SERVER] [--allow-all]

Serve it over stdio until stdin ends.

  --allow-all  let every call through, where the server has no authorizer of its own;
               without it a server with sensitive tools and no authorizer is not served"""
ALLOW_ALL = "--allow-all"
_HINT = "give a module or a file, as in: raxol-sync serve server.py:server"


def serve(words: Sequence[str], output: Output) -> int:
    """Serve until stdin closes or SIGINT or SIGTERM comes; return the exit status.

    Raises:
        UsageError: the words name no server.
        Failure: the module cannot be imported, or its sensitive tools need an authorizer.
    """
    rest = [word for word in words if word != ALLOW_ALL]
    if len(rest) != 1 or rest[0].startswith("-"):
        raise UsageError(f"serve takes one word: {_HINT}")
    target, name = _split(rest[0])
    with _stdout_kept():
        server = _find(_load(target), name, target)
    if len(rest) < len(words):
        server.allow_all_calls()
    try:
        server.require_authorizer()
    except SensitiveToolError as error:
        names = ", ".join(error.tools)
        raise Failure(
            f"sensitive tools need an authorizer: {names}; give the server one, or add {ALLOW_ALL}"
        ) from error
    if sys.stdin is not None and sys.stdin.isatty():
        output.error(
            f"serving {server.name!r} over stdio, for a client that starts this command; "
            "Ctrl-C ends it"
        )
    server.run()
    return 0


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
