"""A small MCP server that misbehaves as it is told; standard library only.

`python server.py [OPTION ...]`; its tools are behaviours too. One line in, one handler; replies
are written by this thread alone unless a handler says otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

OPTIONS = dict(option.partition("=")[::2] for option in sys.argv[1:])
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {},
    "prompts": {},
    "logging": {},
}
if "bare" in OPTIONS:
    CAPABILITIES = {}
END = b"\r\n" if "crlf" in OPTIONS else b"\n"

seen: list[dict[str, Any]] = []  # every message that came
held: list[dict[str, Any]] = []  # calls that are answered later
asked: dict[Any, dict[str, Any]] = {}  # the call that each open request of ours belongs to
answers: dict[Any, list[Any]] = {}  # of each such call


def send(message: Any) -> None:
    """Write one message."""
    data = json.dumps(message, ensure_ascii=False).encode() + END
    raw(data)


def raw(data: bytes) -> None:
    """Write bytes as they are."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def reply(message: dict[str, Any], result: Any) -> None:
    """Answer a request with a result, with what its era wants."""
    meta = message.get("params", {}).get("_meta", {})
    if isinstance(result, dict) and VERSION_KEY in meta and "resultType" not in result:
        result = {"resultType": "complete", **result}
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def refuse(message: dict[str, Any], code: int, text: str, data: Any = None) -> None:
    """Answer a request with an error."""
    error = {"code": code, "message": text, **({} if data is None else {"data": data})}
    send({"jsonrpc": "2.0", "id": message["id"], "error": error})


def notify(method: str, **params: Any) -> None:
    """Send a notification."""
    send({"jsonrpc": "2.0", "method": method, "params": params})


def text(value: str) -> dict[str, Any]:
    """A tool's result with one text item."""
    return {"content": [{"type": "text", "text": value}]}


# ---------------------------------------------------------------- tools


def echo(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with the text that came."""
    reply(message, text(str(arguments.get("text"))))


def silent(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Never answer."""


def hold(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer only when `let_go` is called."""
    held.append(message)


def let_go(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer all calls that were held, newest first, then this one."""
    while held:
        reply(held.pop(), text("held"))
    reply(message, text("let go"))


def die(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """End in the middle of a call."""
    os.write(2, b"about to fall over\nlast words\n")
    os._exit(7)


def kill(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Be killed by a signal."""
    os.kill(os.getpid(), signal.SIGKILL)


def wrong_id(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer ids that nobody asked with, of every type, then the right one."""
    for other in (99999, str(message["id"]), None, True, 1.5, -1):
        send({"jsonrpc": "2.0", "id": other, "result": text("wrong")})
    reply(message, text("right"))


def duplicate(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer three times."""
    for word in ("first", "second", "third"):
        reply(message, text(word))


def rubbish(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Print what is no JSON, no object, no UTF-8; then answer."""
    raw(
        b"Loading...\n\n\x1b[31mred\x1b[0m\n{broken\n[]\n42\nnull\n\xff\xfe\n" + b"[" * 5000 + b"\n"
    )
    raw(b'{"jsonrpc":"2.0"}\n"a string"\n{}\n')
    reply(message, text("after rubbish"))


def flood_stderr(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Write megabytes to stderr before answering."""
    for number in range(64):
        os.write(2, b"%04d " % number + b"x" * (1 << 16) + b"\n")
    reply(message, text("flooded"))


def huge(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with a text of so many characters."""
    reply(message, text("h" * arguments["size"]))


def endless(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Write a line that never ends."""
    while True:
        raw(b"x" * (1 << 16))


def half_line(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Write half an answer and stop."""
    raw(b'{"jsonrpc":"2.0","id":%d,"res' % message["id"])
    time.sleep(3600)


def stop_reading(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer, then read nothing more."""
    reply(message, text("deaf now"))
    time.sleep(3600)


def close_stdout(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Close stdout and live on."""
    os.close(1)
    time.sleep(3600)


def nan(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with a NaN, which JSON has not."""
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":NaN}}\n' % message["id"])


def not_an_object(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with a result that is a list."""
    send({"jsonrpc": "2.0", "id": message["id"], "result": []})


def no_content(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with a result that no tool may give."""
    reply(message, {"content": "text"})


def strange_type(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with a resultType that does not exist."""
    reply(message, {"resultType": "perhaps", "content": []})


def ask_user(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Ask for input, the modern way."""
    asked = {"method": "elicitation/create", "params": {"message": "?"}}
    reply(message, {"resultType": "input_required", "inputRequests": {"q": asked}})


def failing(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Fail as a tool does."""
    reply(message, {**text("it did not work"), "isError": True})


def rpc_error(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Fail as a request does."""
    refuse(message, arguments.get("code", -32000), "no", {"why": "because"})


def progress(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Report progress so many times, then answer."""
    token = message["params"]["_meta"]["progressToken"]
    count = arguments["count"]
    for number in range(1, count + 1):
        notify("notifications/progress", progressToken=token, progress=number, total=count)
    reply(message, text("done"))
    notify("notifications/progress", progressToken=token, progress=count + 1)


def log(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Send log messages, and a notification of no known kind, then answer."""
    notify("notifications/message", level="info", data="one", logger="here")
    notify("notifications/message", level="error", data={"n": 2})
    notify("notifications/custom", a=1)
    reply(message, text(str(message["params"].get("_meta", {}))))


def separators(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with unicode line separators, in pieces that cut characters."""
    data = json.dumps(
        {"jsonrpc": "2.0", "id": message["id"], "result": text("a\u2028b\u2029c\u0085d\x0b€")},
        ensure_ascii=False,
    ).encode()
    for index in range(len(data)):
        raw(data[index : index + 1])
    raw(b"\r\n")


def batch(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer inside a JSON-RPC batch."""
    send([{"jsonrpc": "2.0", "id": message["id"], "result": text("in a batch")}])


def changed(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Say that the list of tools has changed, then answer."""
    notify("notifications/tools/list_changed")
    reply(message, text("changed"))


def environ(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with the environment."""
    reply(message, text(json.dumps(dict(os.environ))))


def messages(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Answer with every message that came so far."""
    reply(message, text(json.dumps(seen)))


def ask_client(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Send requests to the client; `messages` shows its answers."""
    send({"jsonrpc": "2.0", "id": "p1", "method": "ping"})
    send({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {}})
    reply(message, text("asked"))


def ask(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Ask the client for `wants` ([method, params] each), as the era does; answer with its answers.

    Modern: `rounds` times (1), with `state` ("s") if it is not null. Legacy: under `ids`; only with
    `wait` (true) does the call wait for the answers.
    """
    wants = arguments["wants"]
    if VERSION_KEY in message["params"].get("_meta", {}):
        ask_modern(message, arguments, wants)
        return
    ids = arguments.get("ids") or [f"{message['id']}.{number}" for number in range(len(wants))]
    answers[message["id"]] = []
    for key, (method, params) in zip(ids, wants, strict=False):
        asked[key] = message
        send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    if not arguments.get("wait", True):
        reply(message, text("asked"))


def withdraw(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Cancel requests of ours."""
    for key in arguments["ids"]:
        notify("notifications/cancelled", requestId=key)
    reply(message, text("withdrawn"))


def ask_modern(message: dict[str, Any], arguments: dict[str, Any], wants: Any) -> None:
    """Require input, until the rounds are over."""
    params = message["params"]
    done = sum(m["params"].get("name") == "ask" for m in seen if m.get("method") == "tools/call")
    if done > arguments.get("rounds", 1):
        reply(message, text(json.dumps(params.get("inputResponses"))))
        return
    result: dict[str, Any] = {"resultType": "input_required"}
    if wants is not None:
        keys = [f"k{number}" for number in range(len(wants))]
        made = [{"method": method, "params": params} for method, params in wants]
        result["inputRequests"] = dict(zip(keys, made, strict=True))
    if arguments.get("state", "s") is not None:
        result["requestState"] = arguments.get("state", "s")
    if "progress" in arguments:
        token = params["_meta"]["progressToken"]
        notify("notifications/progress", progressToken=token, progress=done)
    reply(message, {**result, **arguments.get("raw", {})})


def ask_user_form(message: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Require one form, `message` says what, then answer."""
    found = message["params"].get("inputResponses")
    if found is not None:
        reply(message, text(json.dumps(found) if "message" in arguments else "thanks"))
        return
    params = {"message": arguments.get("message", "?"), "requestedSchema": {}}
    asked_for = {"q": {"method": "elicitation/create", "params": params}}
    reply(message, {"resultType": "input_required", "inputRequests": asked_for})


def ask_once(message: dict[str, Any], params: dict[str, Any]) -> None:
    """Require the roots for a prompt or a resource, then answer with what came."""
    found = params.get("inputResponses")
    if found is None:
        asked_for = {"r": {"method": "roots/list"}}
        reply(message, {"resultType": "input_required", "inputRequests": asked_for})
    elif message["method"] == "prompts/get":
        item = {"role": "user", "content": {"type": "text", "text": json.dumps(found)}}
        reply(message, {"messages": [item]})
    else:
        reply(message, {"contents": [{"uri": params["uri"], "text": json.dumps(found)}]})


def take_answer(answer: dict[str, Any]) -> None:
    """Keep an answer of the client's; answer the call once it has all."""
    message = asked.pop(answer["id"], None)
    if message is None:
        return
    found = answers[message["id"]]
    found.append(answer)
    arguments = message["params"]["arguments"]
    if len(found) == len(arguments["wants"]) and arguments.get("wait", True):
        reply(message, text(json.dumps(found)))


TOOLS = {
    function.__name__: function
    for function in (
        echo, silent, hold, let_go, die, kill, wrong_id, duplicate, rubbish, flood_stderr, huge,
        endless, half_line, stop_reading, close_stdout, nan, not_an_object, no_content,
        strange_type, ask_user, failing, rpc_error, progress, log, separators, batch, changed,
        environ, messages, ask_client, ask,
        ask_user_form, withdraw,
    )
}  # fmt: skip


# ---------------------------------------------------------------- the protocol


def answer(message: dict[str, Any]) -> None:
    """Serve one request."""
    method, params = message["method"], message.get("params", {})
    modern = VERSION_KEY in params.get("_meta", {})
    if method == "server/discover" and OPTIONS.get("era") != "legacy":
        discover(message)
    elif method == "initialize" and OPTIONS.get("era") != "modern":
        initialize(message, params)
    elif method == "ping" and not modern:
        reply(message, {})
    elif method in ("prompts/get", "resources/read") and modern:
        ask_once(message, params)
    elif method == "tools/list":
        list_tools(message, params)
    elif method == "tools/call":
        tool = TOOLS.get(params["name"])
        if tool is None:
            refuse(message, -32602, "Unknown tool")
        else:
            tool(message, params.get("arguments", {}))
    elif "exit-on-unknown" in OPTIONS:
        sys.exit(1)
    elif "silent-on-unknown" not in OPTIONS:
        refuse(message, -32601, "Method not found")


def discover(message: dict[str, Any]) -> None:
    """Answer `server/discover`, or misbehave at it."""
    if "silent-discover" in OPTIONS:
        held.append(message)
    elif "unsupported-once" in OPTIONS:
        del OPTIONS["unsupported-once"]
        refuse(message, -32022, "Unsupported protocol version", {"supported": ["2026-07-28"]})
    else:
        versions = OPTIONS.get("versions", "2026-07-28").split("+")
        reply(message, {"supportedVersions": versions, "capabilities": CAPABILITIES})


def initialize(message: dict[str, Any], params: dict[str, Any]) -> None:
    """Answer `initialize`, or misbehave at it."""
    if "silent-initialize" in OPTIONS:
        return
    if "late-discover" in OPTIONS:  # the discover answer comes first after all
        del OPTIONS["silent-discover"]
        discover(held.pop())
    version = OPTIONS.get("answers", params.get("protocolVersion"))
    info = {"name": "hostile", "version": "1"}
    reply(message, {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": info})


def list_tools(message: dict[str, Any], params: dict[str, Any]) -> None:
    """List the tools, three on a page."""
    names = list(TOOLS)
    start = int(params.get("cursor", "0"))
    page = [{"name": name, "inputSchema": {"type": "object"}} for name in names[start : start + 3]]
    result: dict[str, Any] = {"tools": page}
    if start + 3 < len(names):
        result["nextCursor"] = str(start + 3)
    if "ttl" in OPTIONS:
        result.update(ttlMs=int(OPTIONS["ttl"]), cacheScope="public")
    reply(message, result)


def prepare() -> None:
    """Misbehave before the first message."""
    if "ignore-term" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "grandchild" in OPTIONS:  # it inherits all three pipes
        detached = OPTIONS["grandchild"] == "detached"
        child = subprocess.Popen(
            [sys.executable, "-S", "-c", "import time; time.sleep(30)"], start_new_session=detached
        )
        with open(OPTIONS["pidfile"], "w") as file:
            file.write(str(child.pid))
    if "banner" in OPTIONS:
        raw(b"Welcome to the server!\nlistening on stdio\n")
    if "dies" in OPTIONS:
        sys.exit("cannot read the configuration")


def main() -> None:
    """Serve until stdin ends."""
    prepare()
    for line in sys.stdin.buffer:
        message = json.loads(line)
        seen.append(message)
        if "never-answers" not in OPTIONS and "method" in message and "id" in message:
            answer(message)
        elif "method" not in message and "id" in message:
            take_answer(message)
    if "ignore-eof" in OPTIONS:
        time.sleep(3600)


if __name__ == "__main__":
    main()
