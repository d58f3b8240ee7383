"""The server that comes with the library: `embedded.py PORT`."""

from __future__ import annotations

import sys

from hosted import OPTIONS, server

server.run_http(port=int(sys.argv[1]), **OPTIONS)
