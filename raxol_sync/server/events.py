"""What happens to a request, as telemetry tells it. Floor 3."""

from __future__ import annotations

from typing import Any

from raxol_sync._deadline import now
from raxol_sync.server.connections import Call
from raxol_sync.telemetry import Telemetry

Json = dict[str, Any]


def tell(telemetry: Telemetry, call: Call, event: str, **facts: Any) -> None:
    """Emit an event about a request."""
    conn_id = call.conn.conn_id
    telemetry.emit(event, method=call.method, id=call.id, conn_id=conn_id, **facts)


def tell_end(telemetry: Telemetry, call: Call, response: Json | None) -> None:
    """Emit how a request ended, and where it was parked until then, that it no longer is."""
    if call.place is not None:
        tell_unparked(telemetry, call, call.ending)
    answer = response or {}
    facts: Json = {"seconds": now() - call.started}
    event = f"request_{call.ending}"
    if call.ending == "finished" and "error" in answer:
        event, facts["code"] = "request_failed", answer["error"]["code"]
    elif call.ending == "finished":
        facts["is_error"] = answer.get("result", {}).get("isError") is True
    tell(telemetry, call, event, **facts)


def tell_unparked(telemetry: Telemetry, call: Call, reason: str) -> None:
    """Emit that a parked call was closed, and why: its detail, or ``approved``."""
    name = call.params.get("name")
    telemetry.emit("parked_closed", tool=name, conn_id=call.conn.conn_id, reason=reason)
