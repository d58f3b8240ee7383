"""The benchmark's server, made with raxol_sync: over stdio, or over HTTP at a port."""

import sys
import time

from raxol_sync import Server

server = Server("bench", max_in_flight=128, max_in_flight_per_connection=96)


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def sleep(ms: int) -> str:
    """Block for ms milliseconds."""
    time.sleep(ms / 1000)
    return "slept"


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run_http(port=int(sys.argv[1]), require_authorization=False, access_log=False)
    else:
        server.run()
