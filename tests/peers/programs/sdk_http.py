"""The server of `sdk_server.py` over HTTP: `sdk_http.py streamable|sse|stateless|json PORT`."""

from __future__ import annotations

import sys

import uvicorn
from sdk_server import MODERN, server


def main() -> None:
    """Serve until the process is ended."""
    mode, port = sys.argv[1], int(sys.argv[2])
    if mode == "sse":
        app = server.sse_app()
    elif MODERN:
        app = server.streamable_http_app(
            stateless_http=mode == "stateless", json_response=mode == "json"
        )
    else:
        server.settings.stateless_http = mode == "stateless"
        server.settings.json_response = mode == "json"
        app = server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


main()
