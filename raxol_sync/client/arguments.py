"""What a client was told about HTTP. Floor 2; apart, because not everybody loads HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class WebArguments:
    """What a client was told about HTTP, unchecked. Its values may be secrets."""

    url: Any = field(repr=False)
    headers: Any = field(repr=False)
    auth: Any = field(repr=False)
    proxies: Any = field(repr=False)
    allow_http: bool
    block_private: bool
    pool_size: Any
