"""What each client command asks, and how its answer is shown. Floor 5.

Each takes a ready client and returns the exit status. With ``--json`` the answer is the result as
it came on the wire; ``tools`` joins the pages of the list, ``status`` has a form of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from raxol_sync._deadline import DEFAULT, Deadline, Default, now
from raxol_sync.cli import printing, values
from raxol_sync.cli.arguments import Request
from raxol_sync.cli.failures import ASK_HINT, MAX_LINE, Failure, plain
from raxol_sync.cli.printing import Output
from raxol_sync.client.client import Client
from raxol_sync.client.listing import MAX_ITEMS, read_page, walk
from raxol_sync.client.results import read
from raxol_sync.content import contents_from_wire
from raxol_sync.errors import METHOD_NOT_FOUND, MCPError, RPCError
from raxol_sync.values import CallResult, PromptMessages, ToolInfo

Json = dict[str, Any]
_MAX_NAMED = 20  # names of tools in the error that a tool does not exist


class Asking:
    """A ready client, with what is left of the command's time."""

    def __init__(self, client: Client, request: Request, deadline: Deadline) -> None:
        self.client = client
        self.request = request
        self._deadline = deadline

    @property
    def timeout(self) -> float | Default | None:
        """What the next request may take, in seconds."""
        return DEFAULT if self.request.timeout is None else self._deadline.left()

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        """Make a request; return its result as it came."""
        return self.client.request(method, params, timeout=self.timeout)

    def tools(self) -> list[ToolInfo]:
        """Return the server's tools."""
        return self.client.list_tools(timeout=self.timeout)


def tools(asking: Asking, output: Output) -> int:
    """List the tools: name, arguments, the first paragraph of the description."""
    if asking.request.json:
        output.json(_raw_tools(asking))
        return 0
    found = asking.tools()
    rows = [(t.name, values.signature(t.input_schema), _first_paragraph(t)) for t in found]
    _table(output, rows, "the server has no tools")
    return 0


def call(asking: Asking, output: Output) -> int:
    """Call a tool. Its own failure goes to stderr, and is status 1."""
    request = asking.request
    known = {tool.name: tool for tool in asking.tools()} if request.pairs else {}
    tool = known.get(request.subject)
    arguments = values.arguments(request.pairs, tool.input_schema if tool else {})
    try:
        raw = asking.ask("tools/call", {"name": request.subject, "arguments": arguments})
    except RPCError as error:
        raise Failure(f"{plain(error)}{_tools_hint(asking)}") from error
    result = read("tools/call", CallResult.from_wire, raw)
    if request.json:
        output.json(raw)
    elif result.is_error:
        hint = _ask_hint(result, request) or _tools_hint(asking)
        output.error(_shown(result) + printing.one_line(hint, MAX_LINE))
    else:
        output.text(_shown(result))
    return 1 if result.is_error else 0


def _ask_hint(result: CallResult, request: Request) -> str:
    """Return what helps where a person would have to approve, and nobody could be asked."""
    try:
        said = json.loads(result.text)
    except (ValueError, RecursionError):
        return ""
    wanted = {"error": "authorization_required", "decision": "ask"}
    needed = isinstance(said, dict) and wanted.items() <= said.items()
    return ASK_HINT if needed and not request.ask else ""


def read_resource(asking: Asking, output: Output) -> int:
    """Read a resource."""
    raw = asking.ask("resources/read", {"uri": asking.request.subject})
    items = read("resources/read", _contents, raw)
    if asking.request.json:
        output.json(raw)
    else:
        for item in items:
            output.text(printing.contents_text(item))
    return 0


def prompt(asking: Asking, output: Output) -> int:
    """Render a prompt: its messages, each with who speaks."""
    params: Json = {"name": asking.request.subject}
    if asking.request.pairs:
        params["arguments"] = dict(asking.request.pairs)
    raw = asking.ask("prompts/get", params)
    messages = read("prompts/get", PromptMessages.from_wire, raw)
    if asking.request.json:
        output.json(raw)
        return 0
    for message in messages:
        for content in message.items:
            output.text(f"{message.role}: {printing.content_text(content)}")
    return 0


def ping(asking: Asking, output: Output) -> int:
    """Ask for a sign of life, and tell how long the answer took."""
    era = asking.client.status().era
    begun = now()
    raw = asking.ask("server/discover" if era == "modern" else "ping")
    if asking.request.json:
        output.json(raw)
    else:
        output.text(f"answered in {(now() - begun) * 1000:.0f} ms")
    return 0


def status(asking: Asking, output: Output) -> int:
    """Tell what the server speaks, and name all that it offers."""
    client = asking.client
    offers = {
        "tools": [tool.name for tool in asking.tools()],
        "resources": [info.uri for info in _list(asking, client.list_resources)],
        "resource_templates": [
            info.uri_template for info in _list(asking, client.list_resource_templates)
        ],
        "prompts": [info.name for info in _list(asking, client.list_prompts)],
    }
    found = client.status()
    if asking.request.json:
        output.json({**asdict(found), "offers": offers})
        return 0
    rows = [("state", found.state), ("revision", f"{found.protocol_version} ({found.era})")]
    rows += [(word.replace("_", " "), ", ".join(names) or "none") for word, names in offers.items()]
    _table(output, rows, "")
    return 0


COMMANDS: dict[str, Callable[[Asking, Output], int]] = {
    "tools": tools,
    "call": call,
    "read": read_resource,
    "prompt": prompt,
    "ping": ping,
    "status": status,
}


# ---------------------------------------------------------------- inside


def _raw_tools(asking: Asking) -> list[Any]:
    def page(cursor: str | None) -> Any:
        result = asking.ask("tools/list", None if cursor is None else {"cursor": cursor})
        return read_page("tools/list", "tools", result, lasting=True)

    try:
        return walk("tools/list", page, MAX_ITEMS)
    except RPCError as error:
        if error.code == METHOD_NOT_FOUND:  # it has none, and so no list of them
            return []
        raise


def _list(asking: Asking, method: Callable[..., list[Any]]) -> list[Any]:
    """Return a list; an empty one where the server declares the kind but not the list."""
    try:
        return method(timeout=asking.timeout)
    except RPCError as error:
        if error.code == METHOD_NOT_FOUND:
            return []
        raise


def _tools_hint(asking: Asking) -> str:
    """Return what tools there are, if the one that was called is not among them."""
    try:
        names = [tool.name for tool in asking.tools()]
    except MCPError:  # what the server said about the call counts
        return ""
    if asking.request.subject in names:
        return ""
    more = ", ..." if len(names) > _MAX_NAMED else ""
    listed = ", ".join(names[:_MAX_NAMED]) + more
    return f"; its tools are {listed}" if names else "; it has no tools"


def _first_paragraph(tool: ToolInfo) -> str:
    return tool.description.strip().split("\n\n")[0]


def _shown(result: CallResult) -> str:
    """Return a result as text: its content, or where there is none its structured content."""
    if result.content:
        return "\n".join(map(printing.content_text, result.content))
    if result.structured_content is not None:
        return printing.to_json(result.structured_content)
    return "(no content)"


def _contents(result: Json) -> list[Any]:
    items = result.get("contents")
    if not isinstance(items, list):
        raise ValueError("it has no contents list")
    return [contents_from_wire(item) for item in items]


def _table(output: Output, rows: list[Any], nothing: str) -> None:
    if rows:
        output.text("\n".join(printing.table(rows, output.width)))
    else:
        output.error(nothing)
