#!/usr/bin/env python3
"""A script that starts a server, asks it something, and handles what may go wrong."""

import sys
from pathlib import Path

from raxol_sync import Client, MCPError

SERVER = Path(__file__).with_name("server.py")


def main() -> int:
    """Print the temperature of the city on the command line, or of Oslo."""
    city = sys.argv[1] if len(sys.argv) > 1 else "Oslo"
    try:
        with Client("weather", command=sys.executable, args=[str(SERVER)]) as weather:
            answer = weather.call_tool("temperature", {"city": city}, timeout=10)
    except MCPError as error:  # it could not be started, died, or did not answer in time
        print(f"no answer: {error}", file=sys.stderr)
        return 1
    if answer.is_error:  # the tool itself says no
        print(answer.text, file=sys.stderr)
        return 1
    print(f"{city}: {answer.structured_content['result']} degrees")
    return 0


if __name__ == "__main__":
    sys.exit(main())
