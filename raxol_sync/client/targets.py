"""Which URL and which address may be dialled, and what may be said of it (rows C04, C23). Floor 1.

Pure: names are resolved by the caller, who hands the addresses in. Nothing here puts userinfo, a
query or a header value into a text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from raxol_sync.errors import InvalidSpec, TargetBlocked

DEFAULT_PORTS = {"http": 80, "https": 443}
RESERVED = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-encoding", "content-length",
        "content-type", "host", "keep-alive", "last-event-id", "mcp-method", "mcp-name",
        "mcp-protocol-version", "mcp-session-id", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers that are the transport's own, lower case; so is whatever begins with ``mcp-param-``."""

_NAT64 = IPv6Network("64:ff9b::/96")
_URL_SAFE = "%/:?#[]@!$&'()*+,;=~"  # what is encoded already stays as it is
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class HttpTarget(NamedTuple):
    """A URL that may be dialled.

    Attributes:
        url: what is requested: without userinfo and fragment. It may hold secrets (its query).
        scheme: ``http`` or ``https``.
        host: lower case, without brackets.
        port: given, or the scheme's own.
        path: of the URL, at least ``/``.
        authorization: what the URL's userinfo stands for, ``None`` without any. A secret.
    """

    url: str
    scheme: str
    host: str
    port: int
    path: str
    authorization: str | None = None

    @property
    def where(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: what has a breaker and an era."""
        return f"{self.scheme}://{self.where}"

    @property
    def shown(self) -> str:
        """The target as it may be shown: without query and userinfo."""
        return self.origin + self.path

    def __repr__(self) -> str:
        return f"HttpTarget({self.shown!r})"


def parse_target(url: object, *, allow_http: bool = False) -> HttpTarget:
    """Return the target that a URL names (row C23).

    Raises:
        InvalidSpec: it is no http or https URL.
        TargetBlocked: it is plain http to another host than this one.
    """
    if not isinstance(url, str) or re.search(r"[\x00-\x20\x7f]", url):
        raise InvalidSpec("url= must be a string without spaces and control characters")
    try:
        parts = urlsplit(url)
        port, host = parts.port, (parts.hostname or "").rstrip(".")
    except ValueError:
        # Its text may hold what was wrong, userinfo included.
        raise InvalidSpec("url= is not valid: its host or port cannot be read") from None
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise InvalidSpec("url= must begin with https:// (or http://) and name a host")
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        raise TargetBlocked(
            host, "plain http goes to this machine only: use https or allow_http=True"
        )
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    path = quote(parts.path or "/", safe=_URL_SAFE)
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            raise InvalidSpec("url= names a host that cannot be one") from None
    shown_host = f"[{host}]" if ":" in host else host
    clean = f"{parts.scheme}://{shown_host}:{port}{path}"
    if port == DEFAULT_PORTS[parts.scheme]:
        clean = f"{parts.scheme}://{shown_host}{path}"
    if parts.query:
        clean += f"?{quote(parts.query, safe=_URL_SAFE)}"
    return HttpTarget(clean, parts.scheme, host, port, path, _basic(parts.username, parts.password))


def _basic(user: str | None, password: str | None) -> str | None:
    if not user and not password:
        return None
    pair = f"{unquote(user or '')}:{unquote(password or '')}".encode()
    return "Basic " + base64.b64encode(pair).decode("ascii")


def message_endpoint(target: HttpTarget, endpoint: str) -> HttpTarget:
    """Return where messages go, as an HTTP+SSE server's ``endpoint`` event names it.

    Raises:
        TargetBlocked: it is at another origin: credentials would go to a stranger.
    """
    try:
        found = parse_target(urljoin(target.url, endpoint.strip()), allow_http=True)
    except InvalidSpec:
        raise TargetBlocked(
            target.host, "the server names a message endpoint that is no URL"
        ) from None
    if found.origin != target.origin:
        raise TargetBlocked(found.host, "the server names a message endpoint at another origin")
    return found


def is_loopback(host: str) -> bool:
    """Return whether a host's name, or its address as text, is this machine by its form alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def refused_address(address: str) -> bool:
    """Return whether ``block_private`` refuses an address: what is not plainly public (row C23).

    An IPv6 address that carries an IPv4 one is judged by both.
    """
    found = _address(address.split("%", 1)[0])
    if found is None:
        return True
    if not found.is_global or found.is_multicast or found.is_reserved:
        return True
    inner = _inner_ipv4(found)
    return inner is not None and refused_address(inner)


def check_addresses(host: str, addresses: Iterable[str]) -> None:
    """Refuse a host of which any address is private; raises ``TargetBlocked``."""
    found = list(addresses)
    if not found or any(refused_address(address) for address in found):
        raise TargetBlocked(
            host, "it resolves to an address that is not public (block_private=True)"
        )


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _inner_ipv4(address: IPv4Address | IPv6Address) -> str | None:
    """Return the IPv4 address inside of an IPv6 one: mapped, 6to4, Teredo or NAT64."""
    if isinstance(address, IPv4Address):
        return None
    found = address.ipv4_mapped or address.sixtofour
    if found is None and address.teredo is not None:
        found = address.teredo[1]
    if found is None and address in _NAT64:
        found = IPv4Address(int(address) & 0xFFFFFFFF)
    return None if found is None else str(found)


# ---------------------------------------------------------------- headers


def check_headers(headers: object) -> dict[str, str]:
    """Return the user's headers; ``InvalidSpec`` names a wrong one, never its value (row C04)."""
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise InvalidSpec("headers= must be a mapping of names to values")
    found: dict[str, str] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise InvalidSpec("headers= has a name that is no HTTP header's")
        lower = name.lower()
        if lower in RESERVED or lower.startswith("mcp-param-"):
            raise InvalidSpec(f"headers= may not set {name}: the client sets it itself")
        if not isinstance(value, str) or not _VALUE.fullmatch(value) or value != value.strip():
            raise InvalidSpec(
                f"headers= {name}: the value must be a string without line ends, other control "
                "characters and spaces around it"
            )
        if lower in (other.lower() for other in found):
            raise InvalidSpec(f"headers= names {name} twice")
        found[name] = value
    return found
