"""The way to the host of a module; see ``serving.each_of``."""

from __future__ import annotations

import pytest

from tests.hosts.serving import Running
from tests.hosts.talk import Talk


@pytest.fixture
def talk(served: Running) -> Talk:
    """The way to the server of the host that serves."""
    return served.talk
