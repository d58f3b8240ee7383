"""The benchmark's server, made with the official SDK 2.x: over stdio, or over HTTP at a port."""

import sys
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
    if sys.argv[1:]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
