"""Drive a server with the official SDK, 1.x or 2.x, and print one JSON report.

Usage: sdk_client.py MODE COMMAND ARGS... | URL
MODE: legacy, and with 2.x also auto or a modern revision. A URL that ends with /sse: HTTP+SSE.
Results are compared as the SDK writes them for the wire: the two differ in their own names only.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import warnings
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

import anyio
import mcp
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

TIMEOUT = 60.0  # seconds for the whole run
NOTICE_TIMEOUT = 5.0  # seconds for the server to notice that a call was cancelled
SDK = int(version("mcp").split(".")[0])
SDKError = mcp.McpError if SDK == 1 else mcp.MCPError
if SDK == 1:
    from mcp import types
else:
    import mcp_types as types
Report = dict[str, Any]

if SDK > 1:  # ping and log levels are deprecated there, and part of what is tested
    warnings.simplefilter("ignore", mcp.MCPDeprecationWarning)


def wire(result: Any) -> Report:
    """A result of the SDK as it stands on the wire."""
    dumped: Report = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


def uri(text: str) -> Any:
    """How this SDK wants a URI."""
    return AnyUrl(text) if SDK == 1 else text


def texts(result: Report) -> list[str]:
    """The text items of a tool result."""
    return [item["text"] for item in result["content"] if item["type"] == "text"]


def summary(result: Report) -> Report:
    """What the tests compare of a tool result."""
    structured = result.get("structuredContent")
    return {"texts": texts(result), "structured": structured, "is_error": result["isError"]}


async def code_of(awaitable: Any) -> int | None:
    """The JSON-RPC error code that a request ends with, or None."""
    try:
        await awaitable
    except SDKError as error:
        return int(error.error.code)
    return None


def transport_to(command: list[str]) -> Any:
    """What carries the messages to a program, or to a URL."""
    if command[0].endswith("/sse"):
        return sse_client(command[0])
    if command[0].startswith("http"):
        return streamable_http_client(command[0])
    env = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return mcp.stdio_client(
        mcp.StdioServerParameters(command=command[0], args=command[1:], env=env)
    )


class Run:
    """One connected session (1.x) or client (2.x), and the report about it."""

    def __init__(self) -> None:
        self.report: Report = {"progress": [], "logs": [], "updates": [], "steps": []}
        self.peer: Any = None

    async def on_log(self, params: Any) -> None:
        self.report["logs"].append([params.level, params.data])

    async def on_progress(self, done: float, total: float | None, message: str | None) -> None:
        self.report["progress"].append([done, total, message])

    async def on_elicit(self, context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"name": params.message, "age": 7})

    async def on_sample(self, context: Any, params: Any) -> Any:
        text = types.TextContent(type="text", text="because")
        return types.CreateMessageResult(role="assistant", content=text, model="tiny")

    async def on_roots(self, context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/data")])

    async def on_message(self, message: Any) -> None:
        root = getattr(message, "root", message)
        legacy = self.report["protocol_version"] < "2026"  # a listen tells of it itself
        if legacy and getattr(root, "method", "") == "notifications/resources/updated":
            self.report["updates"].append(str(root.params.uri))

    async def call(self, name: str, **arguments: object) -> Report:
        return wire(await self.peer.call_tool(name, arguments))

    def callbacks(self) -> dict[str, Any]:
        return {
            "logging_callback": self.on_log,
            "elicitation_callback": self.on_elicit,
            "sampling_callback": self.on_sample,
            "list_roots_callback": self.on_roots,
            "message_handler": self.on_message,
        }

    @contextlib.asynccontextmanager
    async def connected(self, mode: str, command: list[str]) -> AsyncIterator[None]:
        transport = transport_to(command)
        if SDK == 1:
            async with (
                transport as streams,
                mcp.ClientSession(*streams[:2], **self.callbacks()) as self.peer,
            ):
                hello = wire(await self.peer.initialize())
                self.report["protocol_version"] = hello["protocolVersion"]
                self.report["server"] = hello["serverInfo"]["name"]
                yield
        else:
            options = {"mode": mode, "log_level": "info", **self.callbacks()}
            async with mcp.Client(transport, **options) as self.peer:
                info = self.peer.server_info
                self.report["protocol_version"] = self.peer.protocol_version
                self.report["server"] = info.name if info else None
                yield

    async def legacy_only(self) -> None:
        await self.peer.send_ping()
        self.report["set_level"] = await code_of(self.peer.set_logging_level("info"))

    async def tools(self) -> None:
        report = self.report
        listed = wire(await self.peer.list_tools())["tools"]
        report["tools"] = {tool["name"]: tool for tool in listed}
        report["echo"] = summary(await self.call("echo", text="grüße \u2028 🎈"))
        report["add"] = summary(await self.call("add", a=2, b=3))
        report["point"] = summary(await self.call("point", x=1, y=-1))
        report["fail"] = summary(await self.call("fail", message="no luck"))
        report["noisy"] = summary(await self.call("noisy", lines=300))
        report["bad_arguments"] = summary(await self.call("add", a="one", b=2))
        picture = (await self.call("picture"))["content"][0]
        report["picture"] = [picture["mimeType"], base64.b64decode(picture["data"]).hex()]
        await self.peer.call_tool("count", {"steps": 3}, progress_callback=self.on_progress)
        await self.call("chatter")

    async def asked(self) -> None:
        self.report["survey"] = summary(await self.call("survey"))

    async def on_step(self, done: float, total: float | None, message: str | None) -> None:
        self.report["steps"].append(done)

    async def sent_away(self) -> None:
        """Of a stream that the server closes between the events, nothing is lost."""
        stepped = await self.peer.call_tool("slow_steps", {}, progress_callback=self.on_step)
        self.report["stepped"] = texts(wire(stepped))

    async def updates(self) -> None:
        """A change of a resource, by a subscription or a listen."""
        address = "peer://motd"
        if self.report["protocol_version"] < "2026":
            await self.peer.subscribe_resource(uri(address))
            await self.call("touch", uri=address)
            with anyio.move_on_after(NOTICE_TIMEOUT):
                while not self.report["updates"]:
                    await anyio.sleep(0.01)
        else:
            with anyio.move_on_after(NOTICE_TIMEOUT):
                async with self.peer.listen(resource_subscriptions=[address]) as heard:
                    await self.call("touch", uri=address)
                    async for event in heard:
                        self.report["updates"].append(event.uri)
                        break

    async def unknown(self) -> None:
        peer, report = self.peer, self.report
        report["unknown_tool"] = await code_of(peer.call_tool("nope", {}))
        report["unknown_resource"] = await code_of(peer.read_resource(uri("peer://nope")))
        report["unknown_prompt"] = await code_of(peer.get_prompt("nope", {}))
        report["missing_argument"] = await code_of(peer.get_prompt("greet", {}))

    async def read(self, text: str) -> Report:
        contents: Report = wire(await self.peer.read_resource(uri(text)))["contents"][0]
        return contents

    async def reads(self) -> None:
        report = self.report
        resources = wire(await self.peer.list_resources())["resources"]
        report["resources"] = sorted(resource["uri"] for resource in resources)
        templates = wire(await self.peer.list_resource_templates())["resourceTemplates"]
        report["templates"] = [template["uriTemplate"] for template in templates]
        report["motd"] = (await self.read("peer://motd"))["text"]
        report["item"] = (await self.read("peer://items/7"))["text"]
        report["blob"] = base64.b64decode((await self.read("peer://blob"))["blob"]).hex()
        report["prompts"] = [p["name"] for p in wire(await self.peer.list_prompts())["prompts"]]
        message = wire(await self.peer.get_prompt("greet", {"name": "Ada"}))["messages"][0]
        report["prompt"] = [message["role"], message["content"]["text"]]

    async def side_by_side(self) -> None:
        """Eight calls that wait at once: they must not wait for each other."""
        begun = anyio.current_time()
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(self.peer.call_tool, "sleep", {"ms": 200})
        self.report["side_by_side"] = anyio.current_time() - begun

    async def cancel(self) -> None:
        """Cancel a running call; the server must notice, and go on answering."""
        running = anyio.Event()
        before = await self.cancels()
        # 1.x has no public way to know the next request's id.
        request_id = self.peer._request_id if SDK == 1 else None

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            running.set()

        async def hang() -> None:
            # A server may answer a cancelled request with an error, or not at all.
            await code_of(self.peer.call_tool("hang", {}, progress_callback=on_progress))

        async with anyio.create_task_group() as group:
            group.start_soon(hang)
            await running.wait()
            if SDK == 1:
                await self.send_cancel(request_id)
            group.cancel_scope.cancel()  # 2.x sends notifications/cancelled when this happens
        self.report["cancelled"] = await self.noticed(before)

    async def send_cancel(self, request_id: Any) -> None:
        params = mcp.types.CancelledNotificationParams(requestId=request_id)
        note = mcp.types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.peer.send_notification(mcp.ClientNotification(note))

    async def cancels(self) -> int:
        return int(texts(await self.call("cancelled_count"))[0])

    async def noticed(self, before: int) -> bool:
        with anyio.move_on_after(NOTICE_TIMEOUT) as scope:
            while await self.cancels() != before + 1:
                await anyio.sleep(0.01)
        return not scope.cancelled_caught

    async def all(self, mode: str, command: list[str]) -> Report:
        with anyio.fail_after(TIMEOUT):
            async with self.connected(mode, command):
                if self.report["protocol_version"] < "2026":
                    await self.legacy_only()
                await self.tools()
                await self.unknown()
                await self.reads()
                await self.asked()
                await self.updates()
                await self.sent_away()
                await self.side_by_side()
                await self.cancel()
        return self.report


if __name__ == "__main__":
    print(json.dumps(anyio.run(Run().all, sys.argv[1], sys.argv[2:])))
