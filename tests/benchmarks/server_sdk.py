"""The benchmark's stdio server, made with the official SDK 2.x."""

import time

from mcp.server import MCPServer

server = MCPServer("bench", log_level="WARNING")


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def sleep(ms: int) -> str:
    """Block for ms milliseconds."""
    time.sleep(ms / 1000)
    return "slept"


if __name__ == "__main__":
    server.run("stdio")
