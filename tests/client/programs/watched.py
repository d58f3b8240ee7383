"""A stdio server that tells of changes when it is told to; `die` ends it."""

from __future__ import annotations

import os

from raxol_sync import Server

server = Server("watched")


@server.tool
def touch(uri: str) -> str:
    """Say that a resource has changed."""
    server.notify("notifications/resources/updated", {"uri": uri})
    return "touched"


@server.tool
def change(kind: str) -> str:
    """Say that a list has changed."""
    server.notify(f"notifications/{kind}/list_changed")
    return "changed"


@server.tool
def die() -> None:
    """End this process."""
    os._exit(3)


if __name__ == "__main__":
    server.run()
