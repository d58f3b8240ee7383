"""The benchmark's client, made with the official SDK 2.x and driven from synchronous code.

An event loop in a thread (anyio's blocking portal): what synchronous programs have to do with it.
Arguments: see `client_timing.py`.
"""

import sys
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.benchmarks import client_timing


def main() -> None:
    """Connect, and time calls."""
    target = sys.argv[1]
    where: Any = target
    if not target.startswith("http"):
        where = stdio_client(StdioServerParameters(command=sys.executable, args=[target, "stdio"]))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(where)) as client,
    ):

        async def call() -> Any:
            return await client.call_tool("echo", {"text": client_timing.TEXT})

        client_timing.run(lambda: portal.call(call))


if __name__ == "__main__":
    main()
