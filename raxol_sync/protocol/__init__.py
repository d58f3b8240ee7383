"""The rules of JSON-RPC and MCP, without I/O: no threads, clocks, locks or sockets. Floor 1."""
