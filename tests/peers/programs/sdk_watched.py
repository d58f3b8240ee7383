"""A server made with the official SDK 2.x that tells of changes: `sdk_watched.py [PORT]`."""

from __future__ import annotations

import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("watched", log_level="WARNING")


@server.tool()
async def touch(uri: str, ctx: Context[Any, Any]) -> str:
    """Say that a resource has changed."""
    await ctx.notify_resource_updated(uri)
    return "touched"


@server.tool()
async def change(ctx: Context[Any, Any]) -> str:
    """Say that the list of tools has changed."""
    await ctx.notify_tools_changed()
    return "changed"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import uvicorn

        app = server.streamable_http_app()
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
    else:
        server.run("stdio")
