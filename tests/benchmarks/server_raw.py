"""The servers that clients are measured against: as little as speaks MCP, on pipes or raw sockets.

    server_raw.py stdio | http

`http` prints the port that it listens on. Both eras; one tool, `echo`.
"""

import json
import socket
import sys
import threading
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"
INFO = {"name": "raw", "version": "1"}
TOOL = {
    "name": "echo",
    "description": "Give the text back.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """What a request is answered with."""
    if method == "tools/call":
        text = params["arguments"]["text"]
        found: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    elif method == "tools/list":
        found = {"tools": [TOOL]}
    elif method == "initialize":
        return {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": INFO}
    elif method == "server/discover":
        found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
    else:
        found = {}
    meta = params.get("_meta", {})
    if "io.modelcontextprotocol/protocolVersion" in meta:
        cache = {"ttlMs": 0, "cacheScope": "private"} if method != "tools/call" else {}
        served = {"io.modelcontextprotocol/serverInfo": INFO}
        found.update(resultType="complete", _meta=served, **cache)
    return found


def answer(body: bytes) -> bytes:
    """The response to a message; empty for a notification."""
    message = json.loads(body)
    if "id" not in message:
        return b""
    found = result_of(message["method"], message.get("params") or {})
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": found}).encode()


def stdio() -> None:
    """Serve one client on the pipes."""
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        response = answer(line)
        if response:
            out.write(response + b"\n")
            out.flush()


def connection(sock: socket.socket) -> None:
    """Serve one connection until it is closed; every request has a Content-Length or no body."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    with sock:
        while True:
            while b"\r\n\r\n" not in data:
                more = sock.recv(65536)
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            while len(data) < length:
                more = sock.recv(65536)
                if not more:
                    return
                data += more
            body, data = data[:length], data[length:]
            if not head.startswith(b"POST"):
                sock.sendall(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
                continue
            response = answer(body)
            status = b"200 OK" if response else b"202 Accepted"
            sock.sendall(
                b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (status, len(response), response)
            )


def http() -> None:
    """Serve connections, a thread each."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=connection, args=(sock,), daemon=True).start()


if __name__ == "__main__":
    {"stdio": stdio, "http": http}[sys.argv[1]]()
