"""What the feature tests share: a client of each era for a server of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from raxol_sync import Client, Server

Json = dict[str, Any]
LEGACY, MODERN = "2025-11-25", "2026-07-28"
EACH_ERA = pytest.mark.parametrize("revision", [LEGACY, MODERN])


@contextmanager
def connected(server: Server, revision: str = MODERN, **options: Any) -> Iterator[Client]:
    """A ready client that speaks this revision with a server of this process."""
    with server, Client("test", server=server, protocol_version=revision, **options) as client:
        yield client


def form(**fields: Json) -> Json:
    """A form's schema; all fields are required."""
    return {"type": "object", "properties": fields, "required": list(fields)}
