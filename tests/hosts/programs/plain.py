"""The standard library's server: `plain.py PORT`."""

from __future__ import annotations

import socketserver
import sys
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from hosted import app


class ThreadingServer(socketserver.ThreadingMixIn, WSGIServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 64  # of those that are not accepted yet; five by default


class Quiet(WSGIRequestHandler):
    """No line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


with make_server("127.0.0.1", int(sys.argv[1]), app, ThreadingServer, Quiet) as httpd:
    httpd.serve_forever()
