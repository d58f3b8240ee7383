#!/usr/bin/env python3
"""The server under test: ``server.py --port N`` serves http://127.0.0.1:N/mcp, in every revision.

It offers what the conformance suite looks for by name. Only the public interface is used here.
"""

from __future__ import annotations

import argparse
import struct
import sys
import time
import zlib
from typing import Annotated, Any

from raxol_sync import (
    Audio,
    Context,
    Elicit,
    EmbeddedResource,
    HeaderParam,
    Image,
    Message,
    Prompt,
    Roots,
    Sample,
    Server,
    Text,
    Tool,
    ToolError,
)

Json = dict[str, Any]
PAUSE = 0.05  # seconds between two notifications


def png() -> bytes:
    """Return a red dot as a PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        tail = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + tail

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    body = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def wav() -> bytes:
    """Return a moment of silence as a WAV."""
    samples = b"\x80" * 80
    header = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + header + struct.pack("<4sI", b"data", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def form(required: bool = True, **fields: Json) -> Json:
    """Return the schema of a form."""
    schema: Json = {"type": "object", "properties": fields}
    return {**schema, "required": list(fields)} if required else schema


server = Server("conformance", instructions="Made for the conformance suite.", cache_ttl=60.0)

# ---------------------------------------------------------------- tools: what they return


@server.tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Return an image."""
    return Image(png(), "image/png")


@server.tool
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(wav(), "audio/wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource with its contents."""
    text = "This is an embedded resource content."
    return EmbeddedResource("test://embedded-resource", text=text, mime_type="text/plain")


@server.tool
def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Return several kinds of content."""
    resource = EmbeddedResource(
        "test://mixed-content-resource", text='{"test": "data"}', mime_type="application/json"
    )
    return [Text("Multiple content types test:"), Image(png(), "image/png"), resource]


@server.tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
def test_tool_with_progress(context: Context) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        context.progress(done, 100)
        time.sleep(PAUSE)
    return "Done."


@server.tool
def test_tool_with_logging(context: Context) -> str:
    """Log three messages."""
    for text in ("started", "processing data", "completed"):
        context.log("info", f"Tool {'execution ' * (text != 'processing data')}{text}")
        time.sleep(PAUSE)
    return "Done."


@server.tool
def test_logging_tool(context: Context) -> str:
    """Log one message, if the client wants any."""
    context.log("info", "This tool logs.")
    return "Done."


@server.tool
def test_reconnection(context: Context) -> str:
    """Let the client come back for the result."""
    context.close_stream(retry=0.1)
    time.sleep(0.2)
    return "You came back."


@server.tool
def test_x_mcp_header(region: Annotated[str, HeaderParam("Region")] = "") -> str:  # noqa: PT028
    """Tell a region that also travels in a header."""
    return f"Region: {region}"


# ---------------------------------------------------------------- tools: what they ask


@server.tool
def test_sampling(prompt: str, context: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {context.sample(prompt, max_tokens=100).text}"


@server.tool
def test_missing_capability(context: Context) -> str:
    """Need what the client may not have."""
    return context.sample("Hello?", max_tokens=10).text


@server.tool
def test_elicitation(message: str, context: Context) -> str:
    """Ask for a name and an address."""
    text = {"type": "string", "description": "yours"}
    answer = context.elicit(message, form(username=text, email=text))
    return f"User response: {answer.action}, {dict(answer.content or {})}"


@server.tool
def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Show a form whose fields have defaults."""
    states = ["active", "inactive", "pending"]
    fields: Json = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": states, "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return f"{context.elicit('Check these.', form(required=False, **fields)).content}"


@server.tool
def test_elicitation_sep1330_enums(context: Context) -> str:
    """Show a form with each kind of choice."""
    options, values = [f"option{n}" for n in (1, 2, 3)], [f"value{n}" for n in (1, 2, 3)]
    old = [f"opt{n}" for n in (1, 2, 3)]
    titled = [{"const": value, "title": value.title()} for value in values]
    fields: Json = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": old, "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return f"{context.elicit('Choose.', form(required=False, **fields)).content}"


@server.tool
def test_streaming_elicitation(context: Context) -> str:
    """Ask in the middle of the work."""
    return context.elicit("Go on?", form(ok={"type": "boolean"})).action


NAME = form(name={"type": "string"})
OK = form(ok={"type": "boolean"})


@server.tool
def test_input_required_result_elicitation(context: Context) -> str:
    """Greet somebody by the name that he gives."""
    answer = context.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {answer.content['name'] if answer.content else 'stranger'}!"


@server.tool
def test_input_required_result_sampling(context: Context) -> str:
    """Ask a model for a capital."""
    question = "What is the capital of France?"
    return context.sample(question, max_tokens=100, key="capital_question").text


@server.tool
def test_input_required_result_list_roots(context: Context) -> str:
    """List the client's folders."""
    return ", ".join(root.uri for root in context.list_roots(key="client_roots"))


@server.tool
def test_input_required_result_request_state(context: Context) -> str:
    """Ask once, and know afterwards that it was this question."""
    return f"state-ok: {context.elicit('Is that right?', OK, key='confirm').action}"


@server.tool
def test_input_required_result_tampered_state(context: Context) -> str:
    """Ask once; the answer must be to this question."""
    return context.elicit("Is that right?", OK, key="confirm").action


@server.tool
def test_input_required_result_multiple_inputs(context: Context) -> str:
    """Ask three things at once."""
    answers = context.ask(
        {
            "user_name": Elicit("What is your name?", NAME),
            "greeting": Sample("Write a greeting.", 50),
            "client_roots": Roots(),
        }
    )
    return f"Got {', '.join(sorted(answers))}."


@server.tool
def test_input_required_result_multi_round(context: Context) -> str:
    """Ask one thing after the other."""
    name = context.elicit("What is your name?", NAME, key="step1")
    color = context.elicit("Which color?", form(color={"type": "string"}), key="step2")
    return f"{name.content} likes {color.content}."


@server.tool
def test_input_required_result_capabilities(context: Context) -> str:
    """Ask only what the client can be asked."""
    if "elicitation" in context.client_capabilities:
        context.elicit("What is your name?", NAME, key="user_name")
    if "sampling" in context.client_capabilities:
        context.sample("Write a greeting.", max_tokens=50, key="greeting")
    return "Done."


# ---------------------------------------------------------------- tools: lists that change


@server.tool
def test_trigger_tool_change() -> str:
    """Add a tool and drop it again."""
    schema = {"type": "object"}
    tool = Tool("test_dynamic_tool", "Comes and goes.", schema, lambda arguments: "Hello.")
    server.registry.register_tools([tool])
    server.registry.unregister_tools([tool.name])
    return "The tools have changed."


@server.tool
def test_trigger_prompt_change() -> str:
    """Add a prompt and drop it again."""
    prompt = Prompt("test_dynamic_prompt", lambda arguments: "Hello.", description="Comes, goes.")
    server.registry.register_prompts([prompt])
    server.registry.unregister_prompts([prompt.name])
    return "The prompts have changed."


ADDRESS: Json = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
SCHEMA_2020_12: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
server.registry.register_tools(
    [
        Tool(
            "json_schema_2020_12_tool",
            "Takes arguments of a rich schema.",
            SCHEMA_2020_12,
            lambda arguments: f"Got {sorted(arguments)}.",
        )
    ]
)

# ---------------------------------------------------------------- resources


@server.resource("test://static-text", description="A text.", mime_type="text/plain")
def static_text() -> str:
    """Return a text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", description="An image.", mime_type="image/png")
def static_binary() -> bytes:
    """Return an image."""
    return png()


@server.resource("test://watched-resource", description="May change.", mime_type="text/plain")
def watched_resource() -> str:
    """Return a text that a client may subscribe to."""
    return "This resource can be watched."


@server.resource("test://template/{id}/data", description="Data by its id.")
def template_data(id: str) -> Json:
    """Return the data of an id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# ---------------------------------------------------------------- prompts


@server.prompt
def test_simple_prompt() -> str:
    """Say something."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Say something of two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803
    """Show a resource."""
    text = "Embedded resource content for testing."
    resource = EmbeddedResource(resourceUri, text=text, mime_type="text/plain")
    return [Message(resource), Message("Please process the embedded resource above.")]


@server.prompt
def test_prompt_with_image() -> list[Message]:
    """Show an image."""
    return [Message(Image(png(), "image/png")), Message("Please analyze the image above.")]


@server.prompt
def test_input_required_result_prompt(context: Context) -> str:
    """Ask before saying something."""
    asked = form(context={"type": "string"})
    answer = context.elicit("What is it about?", asked, key="user_context")
    return f"It is about {dict(answer.content or {})}."


def main() -> int:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    server.run_http(port=parser.parse_args().port, require_authorization=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
