"""A stdio server made with the official SDK, 1.x or 2.x: the surface that the peers' tests call.

`our_server.py` offers the same, but for `survey`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any, TypedDict

import anyio
from pydantic import BaseModel

try:  # 2.x
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    MODERN = True
    server = MCPServer("peer2", log_level="WARNING")
except ImportError:  # 1.x: the same under its former name
    from mcp.server.fastmcp import Context, FastMCP, Image
    from mcp.server.fastmcp.exceptions import ToolError

    MODERN = False
    server = FastMCP("peer1", log_level="WARNING")

seen = {"cancelled": 0}


class Point(TypedDict):
    """A structured result."""

    x: int
    y: int


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def sleep(ms: int) -> str:
    """Wait for ms milliseconds."""
    await anyio.sleep(ms / 1000)
    return "slept"


@server.tool()
def point(x: int, y: int) -> Point:
    """Give a structured result."""
    return {"x": x, "y": y}


@server.tool()
def picture() -> Image:
    """Give an image."""
    return Image(data=b"\x89PNG", format="png")


@server.tool()
def fail(message: str) -> str:
    """Fail politely."""
    raise ToolError(message)


@server.tool()
async def count(steps: int, ctx: Context[Any, Any]) -> str:
    """Report progress steps times."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return "counted"


@server.tool()
async def chatter(ctx: Context[Any, Any]) -> str:
    """Send one debug and one warning log message."""
    await ctx.debug("too quiet")
    await ctx.warning("careful")
    return "logged"


@server.tool()
def noisy(lines: int) -> str:
    """Write lines of 1,000 characters to stderr."""
    for _ in range(lines):
        print("x" * 999, file=sys.stderr)
    sys.stderr.flush()
    return "quiet again"


@server.tool()
async def hang(ctx: Context[Any, Any]) -> str:
    """Report progress once, then wait until cancelled."""
    await ctx.report_progress(1)
    try:
        await anyio.sleep(60)
    except BaseException:
        seen["cancelled"] += 1
        raise
    return "woke up"


@server.tool()
def cancelled_count() -> int:
    """How many calls of hang were cancelled."""
    return seen["cancelled"]


@server.tool()
def die(code: int) -> str:
    """End this process without an answer."""
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os._exit(code)


class Person(BaseModel):
    """What is asked of the person at the client."""

    name: str
    age: int = 1


def summary(form: Any, sampled: Any, roots: Any) -> str:
    """Say what the client gave."""
    person = form.data.model_dump() if form.action == "accept" else None
    uris = [str(root.uri) for root in roots.roots]
    return json.dumps([form.action, person, sampled.content.text, sampled.model, uris])


if MODERN:
    # Resolvers ask by requests in the legacy era, by input rounds in the modern one.
    from mcp.server.elicitation import ElicitationResult
    from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
    from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent

    def ask_form() -> Elicit[Person]:
        """Ask for a form."""
        return Elicit("Who?", Person)

    def ask_model() -> Sample:
        """Ask for a model's answer."""
        question = SamplingMessage(role="user", content=TextContent(type="text", text="Why?"))
        return Sample([question], max_tokens=10)

    def ask_roots() -> ListRoots:
        """Ask for the roots."""
        return ListRoots()

    @server.tool(structured_output=False)
    def survey(
        form: Annotated[ElicitationResult[Person], Resolve(ask_form)],
        sampled: Annotated[CreateMessageResult, Resolve(ask_model)],
        roots: Annotated[ListRootsResult, Resolve(ask_roots)],
    ) -> str:
        """Ask the client for all it can give."""
        return summary(form, sampled, roots)

else:
    from mcp.types import SamplingMessage, TextContent

    @server.tool(structured_output=False)
    async def survey(ctx: Context[Any, Any]) -> str:
        """Ask the client for all it can give."""
        form = await ctx.elicit("Who?", Person)
        question = SamplingMessage(role="user", content=TextContent(type="text", text="Why?"))
        sampled = await ctx.session.create_message([question], max_tokens=10)
        return summary(form, sampled, await ctx.session.list_roots())


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


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Please greet {name}."


if __name__ == "__main__":
    server.run("stdio")
