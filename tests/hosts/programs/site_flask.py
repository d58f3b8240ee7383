"""A Flask application with routes of its own, and our server mounted below `/mcp`."""

from __future__ import annotations

from typing import Any

import hosted
from flask import Flask, request, session

from raxol_sync import Context

app = Flask(__name__)
app.secret_key = "a key of the tests"


@app.get("/")
def front() -> str:
    """The application's own page."""
    return "the front page"


@app.get("/login/<name>")
def login(name: str) -> str:
    """Remember who this is."""
    session["user"] = name
    return f"welcome {name}"


@app.post("/mcpx")
def neighbour() -> str:
    """A path that only begins like ours."""
    return "the neighbour"


@hosted.server.tool
def person(context: Context) -> dict[str, Any]:
    """Use what Flask knows of the request: its session and its headers."""
    assert context.environ is not None
    with app.request_context(context.environ):
        return {"user": session.get("user"), "trace": request.headers.get("X-Trace")}


app.wsgi_app = hosted.server.mount(app.wsgi_app, "/mcp", **hosted.OPTIONS)
