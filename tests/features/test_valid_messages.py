"""What both sides say in a long conversation is valid by the official schema of the revision."""

from __future__ import annotations

import queue
import threading
from typing import Any

from raxol_sync import (
    Audio,
    Client,
    Context,
    Elicit,
    EmbeddedResource,
    Image,
    MCPError,
    Message,
    ResourceLink,
    Roots,
    Sample,
    SampleResult,
    Server,
    Text,
    ToolError,
    ToolUse,
    URLElicitationRequired,
)
from tests.features.helpers import form
from tests.features.schemas import Revision, with_schema
from tests.features.test_elicitation import EVERY_FIELD

Json = dict[str, Any]
Content = Text | Image | Audio | ResourceLink | EmbeddedResource
ICONS = [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["any"]}]
TOOL = {"name": "sky", "description": "Look.", "inputSchema": {"type": "object"}}
LISTS = ("several", "colors")  # of choices: since 2025-11-25


class Tap:
    """A server, with a wire-tap on both directions."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self.heard: list[tuple[str, Json]] = []

    def _note(self, side: str, message: Json) -> None:
        with self._lock:
            self.heard.append((side, message))

    def subscribe(self, subscriber: Any, conn_id: Any) -> Any:
        """As the server does, and note what it says."""

        def noting(message: Json) -> None:
            self._note("server", message)
            subscriber(message)

        self._sink = noting
        return self._server.subscribe(noting, conn_id)

    def request(self, message: Json, conn_id: Any, *, sink: Any, owner: Any = None) -> Any:
        """As the server does, and note what the client says."""
        self._note("client", message)
        return self._server.request(message, conn_id, sink=self._sink, owner=owner)


def talkative(revision: str) -> Server:
    """A server that uses what the protocol has."""
    old = revision < "2025-11-25"
    fields = {k: v for k, v in EVERY_FIELD.items() if not (old and k in LISTS)}
    server = Server(
        "talkative",
        title="Talkative",
        description="Talks.",
        website_url="https://example.com",
        icons=ICONS,
        instructions="Listen.",
        page_size=2,
        cache_ttl=1.0,
        extensions={"com.example/x": {}},
    )

    @server.tool(title="All", annotations={"readOnlyHint": True, "title": "All"}, icons=ICONS)
    def everything(
        context: Context,
    ) -> list[Text | Image | Audio | ResourceLink | EmbeddedResource]:
        """Return every kind of content."""
        context.progress(0.5, 1, "half")
        context.log("warning", {"a": [1]}, logger="all")
        note: Json = {"annotations": {"audience": ["user"], "priority": 0.5}, "meta": {"a.b/c": 1}}
        return [
            Text("text", **note),
            Image(b"png", "image/png", **note),
            Audio(b"wav", "audio/wav", **note),
            ResourceLink("a://b", "b", title="B", size=5, mime_type="text/plain", **note),
            EmbeddedResource("a://b", text="b", **note),
            EmbeddedResource("a://c", data=b"c", mime_type="image/png"),
        ]

    @server.tool(output_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    def structured() -> Json:
        return {"n": 1}

    @server.tool
    def fails() -> str:
        raise ToolError("no")

    @server.tool
    def asks(context: Context) -> str:
        context.sample([Message([Text("a"), Text("b")])], systemPrompt="Be brief.", temperature=0.5)
        context.list_roots()
        context.elicit("Form?", form(**fields))
        return str(sorted(context.ask({"a": Sample("?"), "b": Roots(), "c": Elicit("?", form())})))

    @server.tool
    def samples(context: Context) -> str:
        return context.sample("?", tools=[TOOL], toolChoice={"mode": "auto"}).message.role

    @server.tool
    def visits(context: Context) -> str:
        context.elicit_url("Go.", "https://example.com", elicitation_id="e")
        raise URLElicitationRequired("Go.", "https://example.com")

    @server.resource("a://b", title="B", icons=ICONS, annotations={"priority": 1}, size=1)
    def fixed() -> str:
        return "b"

    @server.resource("a://{x}/c", title="C", completers={"x": lambda typed: [typed + "!"]})
    def template(x: str) -> bytes:
        return b"c"

    @server.prompt(title="P", icons=ICONS, meta={"a.b/c": 1})
    def prompt(x: str = "") -> list[Message]:
        """Say something."""
        return [Message("a"), Message(Image(b"png", "image/png"), "assistant")]

    return server


def converse(client: Client, server: Server) -> None:
    """Ask for everything; errors are answers too."""
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    client.describe()
    client.set_log_level("debug")
    client.ping()
    for tool in client.list_tools():
        _try(client.call_tool, tool.name, {}, progress=lambda *given: None, meta={"a.b/c": 1})
    _try(client.call_tool, "nothing")
    for resource in client.list_resources():
        client.read_resource(resource.uri)
    client.list_resource_templates()
    client.read_resource("a://x/c")
    _try(client.read_resource, "a://nowhere")
    client.list_prompts()
    client.get_prompt("prompt", {"x": "y"})
    _try(client.get_prompt, "nothing")
    ref = {"type": "ref/resource", "uri": "a://{x}/c"}
    client.complete(ref, {"name": "x", "value": "v"}, {"y": "z"})
    client.roots_changed()
    with client.listen(told.put), client.subscribe("a://b", told.put):
        server.registry.unregister_tools(["fails"])
        told.get(timeout=10)
        server.notify("notifications/resources/updated", {"uri": "a://b"})
        told.get(timeout=10)
    server.elicitation_completed("e")


def _try(call: Any, *args: Any, **options: Any) -> None:
    try:
        call(*args, **options)
    except MCPError:
        return


def types_of(known: Revision, side: str, message: Json, asked: dict[Any, str]) -> list[str]:
    """The types that a message may have."""
    other = {"client": "server", "server": "client"}[side]
    if "method" in message:
        kind = "Request" if "id" in message else "Notification"
        union = f"{side.capitalize()}{kind}"
        names = known.union(union)
        if known.modern and union == "ClientNotification":
            names = ["CancelledNotification"]
        return [name for name in names if known.method(name) == message["method"]]
    if "error" in message:
        return ["JSONRPCErrorResponse" if "JSONRPCErrorResponse" in known.types else "JSONRPCError"]
    method = asked[other, message["id"]]
    if side == "client":
        found = {"elicitation/create": "Elicit", "sampling/createMessage": "CreateMessage"}
        return [f"{found.get(method, 'ListRoots')}Result"]
    if message["result"].get("resultType") == "input_required":
        return ["InputRequiredResult"]
    return [known.result_type(method)]


@with_schema()
def test_every_message_of_a_long_conversation_is_valid(known: Revision) -> None:
    """Requests, results, errors, notifications and questions of both sides."""
    server = talkative(known.name)
    tap = Tap(server)

    def model(params: Json, *, tools: list[Json]) -> str | SampleResult:
        return SampleResult([ToolUse("1", "sky")], "m", stop_reason="toolUse") if tools else "yes"

    options: Json = {
        # The files allow whole numbers only where the specification says numbers.
        "on_elicit": lambda message, schema, url=None: {"score": 9},
        "on_sample": model,
        "roots": ["/"],
        "client_info": {"name": "c", "version": "1", "title": "C", "icons": ICONS},
        "extensions": {"com.example/x": {}},
    }
    with server, Client("c", server=tap, protocol_version=known.name, **options) as client:
        converse(client, server)
    asked = {(side, m["id"]): m["method"] for side, m in tap.heard if "method" in m and "id" in m}
    wrong = []
    for side, message in tap.heard:
        names = types_of(known, side, message, asked)
        if not names:
            wrong.append(f"{side}: {message.get('method')} is not of this revision")
        for name in names:
            value = message.get("result", message)
            problem = known.problem(name, value)
            if problem is not None:
                wrong.append(f"{side}: {name}: {problem}")
    assert wrong == []
    methods = {message.get("method") for _, message in tap.heard}
    assert len(methods) > 15
