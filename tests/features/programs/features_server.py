"""A server whose tools use what came late to the protocol: pages, and models that use tools."""

from __future__ import annotations

from raxol_sync import (
    Context,
    Message,
    Server,
    Tool,
    ToolUseResult,
    URLElicitationRequired,
)

server = Server("features")
PAGE = "https://example.com/page"
SKY = Tool("sky", "Look up.", {"type": "object"}, lambda arguments: "blue")


@server.tool
def visit(context: Context) -> str:
    """Send the person to a page, and be told at once that the visit has ended."""
    action = context.elicit_url("Go there.", PAGE, elicitation_id="visit-1").action
    server.elicitation_completed("visit-1")
    return action


@server.tool
def locked() -> str:
    """Need a page to be visited first."""
    raise URLElicitationRequired("Go there first.", PAGE, "visit-2")


@server.tool
def forecast(context: Context) -> str:
    """Have a model use a tool, and tell what it says then."""
    turns = [Message("How is the sky?")]
    first = context.sample(turns, tools=[SKY], toolChoice={"mode": "auto"})
    results = [ToolUseResult(use.id, SKY.run({}, context)) for use in first.tool_uses]
    return context.sample([*turns, first.message, Message(results)], tools=[SKY]).text


if __name__ == "__main__":
    server.run()
