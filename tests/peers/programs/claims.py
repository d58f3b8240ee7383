"""Stands between a client and a server, and claims that the client can do more than it can.

`python claims.py COMMAND ARGS...`: adds `sampling`, `elicitation` and `roots` to the capabilities
in `initialize`, so that the server sends the requests that it otherwise would not.
"""

from __future__ import annotations

import json
import subprocess
import sys


def main() -> int:
    """Pass every line on; change one."""
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, text=True, encoding="utf-8")
    assert server.stdin is not None
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            claimed = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
            message["params"]["capabilities"].update(claimed)
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
    server.stdin.close()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
