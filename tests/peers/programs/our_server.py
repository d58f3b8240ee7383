"""A stdio server made with raxol_sync: the same surface as `sdk_server.py`."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TypedDict

from raxol_sync import Context, Image, Server, ToolError

HANG_LIMIT = 60.0  # seconds after which `hang` gives up

server = Server("ours")
cancelled: list[object] = []
never = threading.Event()


class Point(TypedDict):
    """A structured result."""

    x: int
    y: int


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def sleep(ms: int) -> str:
    """Wait for ms milliseconds."""
    never.wait(ms / 1000)
    return "slept"


@server.tool
def point(x: int, y: int) -> Point:
    """Give a structured result."""
    return {"x": x, "y": y}


@server.tool
def picture() -> Image:
    """Give an image."""
    return Image(b"\x89PNG", "image/png")


@server.tool
def fail(message: str) -> str:
    """Fail politely."""
    raise ToolError(message)


@server.tool
def count(steps: int, context: Context) -> str:
    """Report progress steps times."""
    for step in range(1, steps + 1):
        context.progress(step, steps, f"step {step}")
    return "counted"


@server.tool
def chatter(context: Context) -> str:
    """Send one debug and one warning log message."""
    context.log("debug", "too quiet")
    context.log("warning", "careful")
    return "logged"


@server.tool
def noisy(lines: int) -> str:
    """Write lines of 1,000 characters to stderr and to stdout, which is the protocol's."""
    for _ in range(lines):
        print("x" * 999, file=sys.stderr)
        print("x" * 999)
    sys.stdout.flush()
    os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n')
    return "quiet again"


@server.tool
def hang(context: Context) -> str:
    """Report progress once, then wait until cancelled."""
    context.progress(1)
    deadline = time.monotonic() + HANG_LIMIT
    while not context.cancelled and time.monotonic() < deadline:
        never.wait(0.01)
    if context.cancelled:
        cancelled.append(context.request_id)
    return "woke up"


@server.tool
def cancelled_count() -> int:
    """How many calls of hang were cancelled."""
    return len(cancelled)


@server.tool
def die(code: int) -> str:
    """End this process without an answer."""
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os._exit(code)


@server.resource("peer://motd")
def motd() -> str:
    """A text."""
    return "hello"


@server.resource("peer://blob", mime_type="application/octet-stream")
def blob() -> bytes:
    """Some bytes."""
    return b"\x00\x01\xff"


@server.resource("peer://items/{number}")
def item(number: str) -> str:
    """One of many texts."""
    return f"item {number}"


@server.prompt
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Please greet {name}."


if __name__ == "__main__":
    server.run()
