"""The benchmark's server as a WSGI application, for granian."""

from tests.benchmarks.server_ours import server

app = server.wsgi_app("/mcp", require_authorization=False)
