"""The server: threaded shells around the protocol's rules. Floors 2 to 4."""
