"""The HTTP transport: a WSGI application, and what serves it. Floor 0; empty."""
