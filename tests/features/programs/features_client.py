"""Drive `features_server.py` with the official SDK 1.x and print one JSON report."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
import mcp
from mcp import types

REPORT: dict[str, Any] = {"pages": [], "told": []}


async def on_elicit(context: Any, params: Any) -> Any:
    """Agree to whatever page."""
    REPORT["pages"].append([params.message, str(params.url), params.elicitationId])
    return types.ElicitResult(action="accept")


async def on_sample(context: Any, params: Any) -> Any:
    """Use the tool first, then repeat what came of it."""
    last = params.messages[-1].content
    if len(params.messages) == 1:
        use = types.ToolUseContent(type="tool_use", id="u1", name=params.tools[0].name, input={})
        content: Any = [use]
        kind, reason = types.CreateMessageResultWithTools, "toolUse"
    else:
        found = (last if isinstance(last, list) else [last])[0]
        text = f"{found.toolUseId}: {found.content[0].text}"
        content = types.TextContent(type="text", text=text)
        kind, reason = types.CreateMessageResult, "endTurn"
    return kind(role="assistant", content=content, model="m", stopReason=reason)


async def on_message(message: Any) -> None:
    """Note the notifications."""
    root = getattr(message, "root", None)
    if isinstance(root, types.ElicitCompleteNotification):
        REPORT["told"].append(root.params.elicitationId)


async def main() -> None:
    """Call the three tools."""
    env = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = mcp.StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=env)
    able = types.SamplingCapability(tools=types.SamplingToolsCapability())
    async with (
        mcp.stdio_client(command) as (read, write),
        mcp.ClientSession(
            read,
            write,
            sampling_callback=on_sample,
            sampling_capabilities=able,
            elicitation_callback=on_elicit,
            message_handler=on_message,
        ) as session,
    ):
        await session.initialize()
        for name in ("visit", "forecast"):
            result = await session.call_tool(name)
            REPORT[name] = [item.text for item in result.content]
        try:
            await session.call_tool("locked")
        except mcp.McpError as error:
            REPORT["locked"] = [error.error.code, error.error.data]
    print(json.dumps(REPORT))


anyio.run(main)
