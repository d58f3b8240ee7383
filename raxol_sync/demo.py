"""``python -m raxol_sync demo``: the library's main job from end to end, in words. Floor 5."""

from __future__ import annotations

import json
import sys
from typing import Any

from raxol_sync._version import __version__
from raxol_sync.client.client import Client
from raxol_sync.demo_server import server
from raxol_sync.errors import RequestTimeout


def main() -> int:
    """Start the demo server, use it over stdio, print what happens; return the exit status."""
    print(
        f"raxol_sync {__version__}: a server made of plain functions, a client made of plain calls"
    )
    print("\nStarting a server: python -m raxol_sync.demo_server")
    command = ["-m", "raxol_sync.demo_server"]
    with Client("demo", command=sys.executable, args=command, on_elicit=_decide) as client:
        status = client.status()
        print(f"  it is {status.state}, and speaks MCP {status.protocol_version} ({status.era})")
        _show_offers(client)
        _show_calls(client)
        _show_approvals(client)
        _show_failures(client)
    print("\nThe same in an older session, where the server asks and waits:")
    legacy = "2025-11-25"
    with Client(
        "old", command=sys.executable, args=command, on_elicit=_decide, protocol_version=legacy
    ) as client:
        print(f"  it speaks MCP {client.status().protocol_version} ({client.status().era})")
        _show_approvals(client)
    _show_http()
    print("\nThe servers have ended, and nothing of them is left. Now read README.md for your own.")
    return 0


def _show_http() -> None:
    print("\nThe same server over HTTP, in this process:")
    with server.start_http(port=0, require_authorization=False) as service:
        print(f"  it is served at {service.url}")
        with Client("web", url=service.url, on_elicit=_decide) as client:
            split = client.call_tool("split_bill", {"total": 47.5, "people": 3})
            print(f"  split_bill(47.5, 3)    {split.structured_content}")
            counted = client.call_tool("count", {"to": 3}, progress=_print_progress)
            print(f"  count(3)               {counted.text}")
            _show_approvals(client)
    server.close()


def _show_offers(client: Client) -> None:
    print("\nWhat it offers:")
    for tool in client.list_tools():
        parameters = ", ".join(tool.input_schema.get("properties", {}))
        print(f"  tool      {tool.name}({parameters}): {tool.description}")
    for template in client.list_resource_templates():
        print(f"  resource  {template.uri_template}: {template.description}")
    for prompt in client.list_prompts():
        print(f"  prompt    {prompt.name}: {prompt.description}")


def _show_calls(client: Client) -> None:
    print("\nCalling it:")
    split = client.call_tool("split_bill", {"total": 47.5, "people": 3})
    print(f"  split_bill(47.5, 3)    {split.structured_content}")
    counted = client.call_tool("count", {"to": 3}, progress=_print_progress)
    print(f"  count(3)               {counted.text}")
    futures = [client.submit_tool("nap", {"seconds": 0.3}) for _ in range(8)]
    naps = {future.result().text for future in futures}
    print(f"  8 x nap(0.3) at once   {', '.join(naps)}, all of them")
    print(f"  demo://menu/dinner     {client.read_resource('demo://menu/dinner')[0].text}")
    message = client.get_prompt("review", {"dish": "soup"})[0]
    print(f"  prompt review(soup)    {getattr(message.content, 'text', '')}")


def _show_approvals(client: Client) -> None:
    print("\nA tool that a person must approve of:")
    for guest in ("Ann", "Bob"):
        answer = client.call_tool("cancel_booking", {"guest": guest})
        said = answer.text if not answer.is_error else json.loads(answer.text)["detail"]
        print(f"  cancel_booking({guest})    {'refused: ' if answer.is_error else ''}{said}")


def _decide(message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
    """Stands for the person at the client, who likes Bob."""
    approved = "Bob" not in message
    print(f"    asked: {message} {'yes' if approved else 'no'}")
    return {"approve": True} if approved else None


def _print_progress(done: float, total: float | None, message: str | None) -> None:
    print(f"    progress {done:g} of {total or 0:g}: {message}")


def _show_failures(client: Client) -> None:
    print("\nWhat goes wrong, goes wrong politely:")
    refused = client.call_tool("split_bill", {"total": 10, "people": 0})
    print(f"  a tool that says no    {refused.text}")
    invalid = client.call_tool("split_bill", {"total": "much"})
    print(f"  arguments that do not fit: {invalid.text}")
    try:
        client.call_tool("nap", {"seconds": 30}, timeout=0.5)
    except RequestTimeout as error:
        print(f"  a call that takes too long: {error}")
    print(f"  and the next call works: {client.call_tool('nap', {'seconds': 0}).text}")
