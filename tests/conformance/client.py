#!/usr/bin/env python3
"""The client under test: ``client.py URL``, started by the conformance suite for each scenario.

The suite says in the environment which scenario it is, which revision to speak and, for some, what
to call. It judges what its server has seen. Only the public interface is used here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from raxol_sync import Client, MCPError

Arguments = dict[str, Any]
# What a tool gets where a scenario only wants it called, by the type of the argument.
STUBS: Arguments = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": []}


def answer_form(message: str, schema: Mapping[str, Any]) -> Arguments:
    """Accept: say yes to what has no default, and leave the rest to the form's defaults."""
    fields = schema.get("properties", {})
    asked = {name: field for name, field in fields.items() if "default" not in field}
    return {name: STUBS.get(field.get("type"), "x") for name, field in asked.items()}


def say_hello(params: Mapping[str, Any]) -> str:
    """Answer in a model's place."""
    return "Hello."


# ---------------------------------------------------------------- the scenarios


def initialize(client: Client, context: Arguments) -> None:
    """Connect and list."""
    client.list_tools()


def tools_call(client: Client, context: Arguments) -> None:
    """Call the one tool with two numbers."""
    client.list_tools()
    client.call_tool("add_numbers", {"a": 5, "b": 3})


def elicitation_defaults(client: Client, context: Arguments) -> None:
    """Call a tool that shows a form whose fields all have defaults."""
    client.call_tool("test_client_elicitation_defaults")


def sse_retry(client: Client, context: Arguments) -> None:
    """Call a tool whose stream breaks off before the result."""
    client.list_tools()
    client.call_tool("test_reconnection")


def request_metadata(client: Client, context: Arguments) -> None:
    """Call whatever there is."""
    for tool in client.list_tools():
        client.call_tool(tool.name, stub_arguments(tool.input_schema))


def input_rounds(client: Client, context: Arguments) -> None:
    """Call tools that ask back, one that does not, and one that speaks an older dialect."""
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        client.call_tool(f"test_mrtr_{name}")


def standard_headers(client: Client, context: Arguments) -> None:
    """Make one request of each kind."""
    client.list_tools()
    client.call_tool("test_headers")
    client.call_tool("my-hyphenated-tool")
    client.list_resources()
    client.read_resource("file:///path/to/file%20name.txt")
    client.read_resource("https://example.com/resource?id=123")
    client.list_prompts()
    client.get_prompt("test_prompt")


def custom_headers(client: Client, context: Arguments) -> None:
    """Make the calls that the suite names."""
    client.list_tools()
    for call in context["toolCalls"]:
        client.call_tool(call["name"], call["arguments"])


def invalid_tool_headers(client: Client, context: Arguments) -> None:
    """Call every tool that the client has found usable."""
    for tool in client.list_tools():
        client.call_tool(tool.name, stub_arguments(tool.input_schema))


def schema_preservation(client: Client, context: Arguments) -> None:
    """Give a tool back the schema that it was listed with."""
    schemas = {tool.name: tool.input_schema for tool in client.list_tools()}
    client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


SCENARIOS: dict[str, Callable[[Client, Arguments], None]] = {
    "initialize": initialize,
    "tools_call": tools_call,
    "elicitation-sep1034-client-defaults": elicitation_defaults,
    "sse-retry": sse_retry,
    "request-metadata": request_metadata,
    "sep-2322-client-request-state": input_rounds,
    "http-standard-headers": standard_headers,
    "http-custom-headers": custom_headers,
    "http-invalid-tool-headers": invalid_tool_headers,
    "json-schema-ref-no-deref": initialize,
    "json-schema-2020-12-preservation": schema_preservation,
}


def stub_arguments(schema: Mapping[str, Any]) -> Arguments:
    """Return arguments of the right types for a tool's schema."""
    fields = schema.get("properties", {})
    return {name: STUBS.get(field.get("type"), {}) for name, field in fields.items()}


def main() -> int:
    """Run the scenario that the environment names; return the exit status."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    run = SCENARIOS.get(scenario)
    if run is None:
        print(f"no such scenario here: {scenario}", file=sys.stderr)
        return 2
    client = Client(
        "conformance",
        url=sys.argv[-1],
        protocol_version=os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        on_elicit=answer_form,
        on_sample=say_hello,
        roots=[os.getcwd()],
        call_timeout=20.0,
    )
    try:
        with client:
            run(client, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")))
    except MCPError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
