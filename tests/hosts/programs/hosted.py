"""The server that every host runs: `hosted:app`, or behind a framework `site_flask`, `site_django`.

Its limits are small, so that tests are quick. Several workers serve as one: they share a key.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from raxol_sync import Context, Server

HANG_LIMIT = 30.0  # seconds after which `hang` gives up
KEEP_ALIVE = 0.3  # seconds between comments on a silent stream
BODY_LIMIT = 100_000  # bytes
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}

server = Server("hosted", request_state_key=b"a key that all workers share")
cancelled: list[object] = []
never = threading.Event()


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def count(steps: int, context: Context) -> str:
    """Report progress steps times, 50 ms apart."""
    for step in range(1, steps + 1):
        context.progress(step, steps, f"step {step}")
        never.wait(0.05)
    return "counted"


@server.tool
def sleep(ms: int) -> str:
    """Wait for ms milliseconds."""
    never.wait(ms / 1000)
    return "slept"


@server.tool
def hang(context: Context) -> str:
    """Wait until cancelled; say first that it runs."""
    context.progress(1)
    for _ in range(int(HANG_LIMIT / 0.02)):
        if context.cancelled:
            cancelled.append(context.request_id)
            break
        never.wait(0.02)
    return "woke up"


@server.tool
def seen() -> dict[str, Any]:
    """Tell what this process knows: how many hangs were cancelled, listens, calls that run."""
    stats = server.stats()
    return {
        "process": os.getpid(),
        "cancelled": len(cancelled),
        "listens": stats.listens,
        "in_flight": stats.in_flight,
    }


@server.tool
def touch(uri: str) -> str:
    """Tell whoever listens that a resource has changed."""
    server.notify("notifications/resources/updated", {"uri": uri})
    return "told"


@server.tool
def greet(context: Context) -> str:
    """Ask for a name, and greet. Its process is its progress."""
    context.progress(os.getpid())
    answer = context.elicit("Who?", FORM)
    return f"hello {answer.content['name']}" if answer.content else "nobody"


@server.tool
def place(context: Context) -> dict[str, Any]:
    """Tell what the WSGI environ says."""
    environ = context.environ or {}
    names = ("REMOTE_ADDR", "REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "HTTP_X_TRACE")
    return {name: environ.get(name) for name in names}


@server.resource("hosted://note")
def note() -> str:
    """A text."""
    return "a note"


OPTIONS: dict[str, Any] = {
    "require_authorization": False,
    "keep_alive": KEEP_ALIVE,
    "max_body_bytes": BODY_LIMIT,
}
app = server.wsgi_app("/mcp", **OPTIONS)
