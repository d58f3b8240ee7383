"""The application of `hosted`, for several workers and clients of any age: it makes no sessions."""

from __future__ import annotations

from hosted import OPTIONS, server

app = server.wsgi_app("/mcp", max_sessions=0, **OPTIONS)
