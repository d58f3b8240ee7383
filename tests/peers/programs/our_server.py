"""A server made with raxol_sync: the same surface as `sdk_server.py`.

`our_server.py` serves stdio, `our_server.py PORT` HTTP, and `our_server:app` is a WSGI application.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, TypedDict

from raxol_sync import Context, Elicit, Image, Roots, Sample, Server, ToolError

HANG_LIMIT = 60.0  # seconds after which `hang` gives up
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 1}},
    "required": ["name"],
}

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
        never.wait(0.02)  # official TypeScript clients lose progress that comes with the result
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
def survey(context: Context) -> str:
    """Ask the client for all it can give."""
    questions: dict[str, Elicit | Sample | Roots] = {
        "form": Elicit("Who?", PERSON),
        "model": Sample("Why?", 10),
        "roots": Roots(),
    }
    found: Any = context.ask(questions)
    form, model = found["form"], found["model"]
    uris = [root.uri for root in found["roots"]]
    return json.dumps([form.action, form.content, model.text, model.model, uris])


@server.tool
def slow_steps(context: Context) -> str:
    """Report three steps; between them the client is sent away, to come back for the rest."""
    for step in (1, 2, 3):
        context.progress(step, 3, f"step {step}")
        context.close_stream(retry=0.05)
        never.wait(0.15)
    return "stepped"


@server.tool
def touch(uri: str) -> str:
    """Tell whoever asked for it that a resource has changed."""
    server.notify("notifications/resources/updated", {"uri": uri})
    return "told"


@server.tool
def left() -> dict[str, int]:
    """What there still is of clients, this call included."""
    stats = server.stats()
    return {
        "in_flight": stats.in_flight,
        "listens": stats.listens,
        "connections": stats.connections,
        "subscriptions": stats.subscriptions,
        "capabilities": stats.capabilities,
    }


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


app = server.wsgi_app(require_authorization=False, keep_alive=0.5)

if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run_http(port=int(sys.argv[1]), require_authorization=False, keep_alive=0.5)
    else:
        server.run()
