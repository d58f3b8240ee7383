"""From a client's arguments to its HTTP transport; loaded by who gives a ``url``. Floor 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from raxol_sync.client.arguments import WebArguments
from raxol_sync.client.guard import Guard
from raxol_sync.client.http import HttpTransport
from raxol_sync.client.http_base import HttpPlan
from raxol_sync.client.http_sse import SseTransport
from raxol_sync.client.means import means
from raxol_sync.client.targets import check_headers, parse_target
from raxol_sync.client.transport import Transport
from raxol_sync.client.web import WebOptions
from raxol_sync.errors import BlockedSpec, InvalidSpec, TargetBlocked


def make_plan(name: str, web: WebArguments) -> HttpPlan:
    """Return where to connect to and how; ``InvalidSpec`` says what is wrong with it (C01)."""
    means()  # InvalidSpec where requests is not installed
    try:
        found = parse_target(web.url, allow_http=web.allow_http)
        headers = check_headers(web.headers)
        if web.auth is not None and not callable(web.auth):
            raise InvalidSpec("auth= must be a requests auth object, such as HTTPBasicAuth(...)")
        if web.proxies is not None and not isinstance(web.proxies, Mapping):
            raise InvalidSpec("proxies= must be a mapping, as requests takes it")
    except TargetBlocked as error:
        blocked, problem = error, ""
    except InvalidSpec as error:
        blocked, problem = None, str(error)
    else:
        connections = (web.pool_size if isinstance(web.pool_size, int) else 16) + 16
        options = WebOptions(headers, web.auth, web.proxies, web.block_private, connections)
        return HttpPlan(found, options, Guard(found.origin))
    # Raised here, so that nothing hangs on it in which a URL might be.
    if blocked is not None:
        raise BlockedSpec(blocked.host, blocked.reason)
    raise InvalidSpec(f"client {name!r}: {problem}")


def make_dialer(
    plan: HttpPlan, name: str, sizes: Mapping[str, int], wants_stream: bool
) -> Callable[[str], Transport]:
    """Return what makes a fresh transport, for an opening."""

    def dial(opening: str) -> Transport:
        if opening == "sse":
            return SseTransport(plan, name, **sizes)
        return HttpTransport(plan, name, **sizes, wants_stream=wants_stream)

    return dial
