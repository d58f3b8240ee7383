"""A small MCP server for the command line's tests; standard library only.

`python server.py MODE [WORD ...]`: `exit`, `silent`, `rubbish` and `needs` fail before they answer;
`good` answers. `stubborn` answers, and ends neither with its stdin nor on SIGTERM. Other words
only make this process findable.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import sys
import time
from typing import Any

MODE = sys.argv[1]
ESCAPES = "\x1b[31mred\x1b]0;title\x07 \x9b2J\u202eturned\r over \u2028line"
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
ANY = {"type": "object"}
TOOLS = [
    {"name": "add", "description": "Add two numbers.",
     "inputSchema": {**NUMBERS, "required": ["a", "b"]}},
    {"name": "echo", "description": "Say it again.", "inputSchema": {
        "type": "object", "properties": {"text": {"type": "string"}}}, "x-own": [1]},
    {"name": "escapes", "description": f"Bad {ESCAPES}", "inputSchema": ANY},
    {"name": "wide", "description": "日本語の説明 Ünï 👩‍👩‍👧 end", "inputSchema": ANY},
]  # fmt: skip


def text(value: str, **more: Any) -> dict[str, Any]:
    """A tool's result of one text."""
    return {"content": [{"type": "text", "text": value}], **more}


def binary(size: int) -> str:
    """Some bytes as base64."""
    return base64.b64encode(b"\x89" * size).decode()


def report(word: str) -> None:
    """Tell the test, which listens on a port, that this point is reached."""
    with socket.create_connection(("127.0.0.1", int(os.environ["TEST_PORT"])), timeout=10) as peer:
        peer.sendall(word.encode())


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return a tool's result; ``None``: no answer."""
    if name == "add":
        if not all(type(arguments.get(key)) is int for key in "ab"):
            return text("a and b must be integers", isError=True)
        return text(str(arguments["a"] + arguments["b"]))
    if name == "slow":
        report("slow")
        return None
    if name == "die":
        print("first\nRuntimeError: it broke\n", file=sys.stderr, flush=True)
        os._exit(7)
    results = {
        "echo": text(json.dumps(arguments, ensure_ascii=False)),
        "escapes": text(ESCAPES),
        "fails": text(f"no: {ESCAPES}", isError=True),
        "two_lines": text("one\ntwo", isError=True),
        "wrong_shape": {"content": "no list"},
        "picture": {"content": [
            {"type": "image", "data": binary(1234), "mimeType": "image/png"},
            {"type": "audio", "data": binary(10), "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "blob": binary(5)}},
            {"type": "resource", "resource": {"uri": "a://t", "text": "embedded"}},
            {"type": "resource_link", "uri": "a://link", "name": "a link"},
            {"type": "hologram", "data": "?"},
        ]},
        "structured": {"content": [], "structuredContent": {"n": [1, "\x1b\x7f\x9b"]}},
        "nothing": {"content": []},
        "big": text("0123456789abcde\n" * (10 * 2**16)),
    }  # fmt: skip
    return results.get(name)


def answer(method: str, params: dict[str, Any]) -> Any:
    """Return a method's result, an error as a string, or ``None`` for no answer."""
    if method == "initialize":
        capabilities: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
        version = params["protocolVersion"]
        info = {"name": "odd", "version": "1"}
        return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        first = "cursor" not in params
        return {
            "tools": TOOLS[:2] if first else TOOLS[2:],
            **({"nextCursor": "2"} if first else {}),
        }
    if method == "tools/call":
        known = call(params["name"], params.get("arguments", {}))
        return (
            known
            if known is not None or params["name"] == "slow"
            else f"Unknown tool: {params['name']}"
        )
    if method == "resources/read" and params["uri"] == "test://blob":
        return {
            "contents": [{"uri": "test://blob", "blob": binary(3), "mimeType": "application/zip"}]
        }
    if method == "resources/read" and params["uri"] == "test://text":
        return {"contents": [{"uri": "test://text", "text": f"text {ESCAPES}"}]}
    if method == "prompts/get" and params["name"] == "greet":
        content = {"type": "text", "text": f"greet {params.get('arguments')}"}
        return {"messages": [{"role": "user", "content": content}]}
    if method in ("resources/read", "prompts/get"):
        return f"there is no such {method.split('s/', maxsplit=1)[0]} {ESCAPES}"
    if method in ("resources/list", "prompts/list"):
        return {method.split("/")[0]: []}
    return -32601


def serve() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params", {}))
        if result is None:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if isinstance(result, int):
            reply["error"] = {"code": result, "message": "Method not found"}
        elif isinstance(result, str):
            reply["error"] = {"code": -32602, "message": result}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


def main() -> None:
    """Do as the mode says."""
    if MODE == "exit":
        sys.exit("cannot start: the disk is full")
    if MODE == "needs":
        print(f"the key is {len(os.environ['TEST_API_KEY'])} letters long", file=sys.stderr)
        print(os.environ["ANOTHER_KEY_OF_TEST"])
    if MODE == "silent":
        sys.stdin.read()
    if MODE == "rubbish":
        for _ in range(3):
            print("Listening on \x1b[1mport 80\x1b[0m", flush=True)
        for _ in sys.stdin:
            print("what?", flush=True)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()
    while MODE == "stubborn":
        time.sleep(60)


if __name__ == "__main__":
    main()
