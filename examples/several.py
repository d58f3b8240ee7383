#!/usr/bin/env python3
"""Several servers as one: the configuration of a desktop host, tools by their names in it."""

import sys
from pathlib import Path

from raxol_sync import ClientGroup

HERE = str(Path(__file__).parent)
# The same as in a file mcp.json; ClientGroup.from_config("mcp.json") reads one.
CONFIG = {
    "mcpServers": {
        "weather": {"command": sys.executable, "args": ["server.py"], "cwd": HERE},
        "kitchen": {
            "command": sys.executable,
            "args": ["-m", "raxol_sync", "serve", "progress.py:server"],
            "cwd": HERE,
            "env": {"PYTHONPATH": "${PYTHONPATH:-}"},
        },
    }
}


def main() -> None:
    """Start both, call a tool of each, and tell where they stand."""
    with ClientGroup.from_config(CONFIG) as group:
        for tool in group.list_tools():
            print(tool.name)
        cake = group.submit_tool("mcp__kitchen__bake", {"minutes": 3})
        oslo = group.call_tool("mcp__weather__temperature", {"city": "Oslo"})
        print(oslo.structured_content["result"], cake.result().text)
        print({name: status.state for name, status in group.status().items()})


if __name__ == "__main__":
    main()
