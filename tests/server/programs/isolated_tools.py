"""Tools for processes of their own: good ones, and all ways to go wrong. Also a stdio server."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raxol_sync import Server, ToolError


@dataclass
class Point:
    """A value that crosses the border both ways."""

    x: int


class Odd(Exception):
    """An exception that pickles, and cannot be unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one)
        self.two = two


class OddToolError(ToolError):
    """A `ToolError` that cannot be unpickled either."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


class Unreadable:
    """A value whose unpickling fails."""

    def __reduce__(self) -> Any:
        return _refuse, ()


def _refuse() -> None:
    raise ValueError("unpickling refused")


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def move(point: Point) -> Point:
    """Take and return a dataclass."""
    return Point(point.x + 1)


def pid() -> int:
    """Tell which process this is."""
    return os.getpid()


def spin(path: str) -> str:
    """Write the process's id to a file, then loop for ever."""
    Path(path + ".part").write_text(str(os.getpid()))
    os.replace(path + ".part", path)
    while True:
        pass


def leave(code: int) -> str:
    """End the process without a word."""
    os._exit(code)


def crash() -> str:
    """Have the interpreter crash: read memory that is not there."""
    ctypes.string_at(0)
    return "survived"


def sys_exit() -> str:
    """Raise SystemExit."""
    sys.exit(3)


def fails() -> str:
    """Raise what has a secret in it."""
    raise ValueError("secret")


def says_no() -> str:
    """Answer with words."""
    raise ToolError("not today")


def odd() -> str:
    """Raise what cannot be unpickled."""
    raise Odd(1, 2)


def odd_words() -> str:
    """Raise words that cannot be unpickled."""
    raise OddToolError("not", "today")


def returns_lambda() -> Any:
    """Return what cannot be pickled."""
    return lambda: None


def returns_unreadable() -> Any:
    """Return what cannot be unpickled."""
    return Unreadable()


def prints() -> str:
    """Print, which must not reach the protocol's stream."""
    print("noise", flush=True)
    os.write(1, b"raw noise\n")
    return "printed"


def sleeps() -> str:
    """Wait in C, where no signal handler of Python's runs."""
    time.sleep(600)
    return "woke"


TOOLS = (double, move, pid, spin, leave, crash, sys_exit, fails, says_no, odd, odd_words,
         returns_lambda, returns_unreadable, prints, sleeps)  # fmt: skip


def offering(**options: Any) -> Server:
    """A server with all of them, and one that runs in a thread."""
    server = Server("isolated", **options)
    for function in TOOLS:
        server.tool(isolation="process")(function)
    server.tool(name="here")(os.getpid)
    return server


if __name__ == "__main__":
    offering().run()
