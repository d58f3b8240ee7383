"""The application of `hosted`, but its server has been used while this module was imported."""

from __future__ import annotations

from hosted import app, server

__all__ = ["app"]
call = {"name": "echo", "arguments": {"text": "warm"}}
server.handle_message({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
