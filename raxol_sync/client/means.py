"""``requests`` and ``urllib3``, at first use, made so that sockets can be ended. Floor 3.

The only importer of both. Prepared requests go through an adapter: what ``Session.request`` does
beside that (cookies, redirects, merging, environment) is not wanted here and takes as long as all
else.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
from functools import cache
from typing import Any

from raxol_sync._deadline import now
from raxol_sync.client.handle import Handle, WebError
from raxol_sync.client.resolver import resolve
from raxol_sync.client.targets import check_addresses
from raxol_sync.errors import ConnectFailed, InvalidSpec, TargetBlocked

AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Variables that name the certificates to trust: the first that is set, as with ``requests``."""

IDLE_TIME = 4.0  # seconds; servers close idle connections after 5 or more (uvicorn), 6 (node)
_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})  # of OpenSSL: what certificates end in is unknown
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"})
_LOGGERS = ("connectionpool", "connection", "poolmanager", "response", "util.retry")


def authorities() -> str | bool:
    """Return the file or folder of certificates to trust; ``True``: those of ``certifi`` (row C23).

    It never is ``False``: certificates are always verified.

    Raises:
        ConnectFailed: a variable names what cannot be read, or holds no certificate.
    """
    name = _authorities_name()
    if name is None:
        return True
    import ssl

    path = os.environ[name]
    folder = os.path.isdir(path)
    try:
        # Tried here, where it can be told which variable is wrong. A folder is read when needed.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(None if folder else path, path if folder else None)
    except (OSError, ValueError) as error:  # an SSLError is an OSError, too
        what = "holds no certificate in PEM form"
        if not isinstance(error, ssl.SSLError):
            what = f"cannot be read: {(getattr(error, 'strerror', None) or 'no path').lower()}"
        reason = f"{name} in the environment names certificates to trust, but {path!r} {what}"
        raise ConnectFailed(reason) from error
    return path


def _authorities_name() -> str | None:
    return next((name for name in AUTHORITIES if os.environ.get(name)), None)


def explain(error: BaseException, *, connected: bool) -> WebError:
    """Return what an exception of the means comes down to, without its text."""
    seen = _chain(error)
    for one in seen:
        if isinstance(one, TargetBlocked):
            return WebError(False, str(one), one)
    for one in reversed(seen):
        told = _told(one)
        if told is not None:
            return WebError(connected, told)
    return WebError(connected, f"the request failed ({type(error).__name__})")


def unanswered(error: BaseException) -> bool:
    """Return whether the server has closed the connection instead of answering."""
    return any(isinstance(one, (ConnectionResetError, BrokenPipeError)) for one in _chain(error))


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and what is inside of it, the innermost last."""
    found: BaseException | None = error
    seen: list[BaseException] = []
    while found is not None and len(seen) < 12:
        seen.append(found)
        reason = getattr(found, "reason", None)
        inner = reason if isinstance(reason, BaseException) else None
        first = found.args[0] if found.args and isinstance(found.args[0], BaseException) else None
        last = found.args[-1] if found.args and isinstance(found.args[-1], BaseException) else None
        found = inner or first or last or found.__cause__ or found.__context__
    return seen


def _told(error: BaseException) -> str | None:
    """Return what one exception says, in words that hold nothing of ours."""
    import ssl
    from http.client import HTTPException

    if isinstance(error, ssl.SSLCertVerificationError):
        words = f"TLS: the certificate is not valid: {error.verify_message}"
        return words + (_trust_hint() if error.verify_code in _UNKNOWN_AUTHORITY else "")
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        words = str(error.reason).lower().replace("_", " ")
        return f"TLS: {words}: the server may speak plain http: is it http://?"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {str(error.reason or 'the handshake failed').lower().replace('_', ' ')}"
    if isinstance(error, socket.gaierror):
        return f"the host's name cannot be resolved: {error.strerror}"
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return str(error.strerror).lower()
    name = type(error).__name__
    refused = re.match(r"Tunnel connection failed: (\d{3})\b", str(error))
    if refused is not None:
        return f"the proxy refused to connect (HTTP status {refused[1]})"
    if name == "RemoteDisconnected":
        return "the server closed the connection without an answer"
    if name in ("IncompleteRead", "ProtocolError") and not isinstance(error, HTTPException):
        return None  # urllib3's own: it has the cause inside
    if name == "IncompleteRead":
        return "the server closed the connection in the middle of its answer"
    if isinstance(error, HTTPException):
        return f"what the server sent is not HTTP ({name})"
    return None


def _trust_hint() -> str:
    """Return how to have a certificate trusted that an authority of one's own has signed."""
    name = _authorities_name()
    if name is None:
        return f"; {AUTHORITIES[0]} may name a file with the certificate of your own authority"
    return f"; the certificates that {name} names do not vouch for it"


class Means:
    """``requests`` and what is made of it; see ``means``."""

    def __init__(self) -> None:
        import requests
        from requests import adapters, hooks, utils

        self._requests = requests
        self._hooks = hooks
        self._utils = utils
        self._adapters = adapters
        self.local = threading.local()  # handle: of the request that this thread is making
        for name in _LOGGERS:
            # They would log our URLs, queries included (row C04); others' requests are let through.
            logging.getLogger(f"urllib3.{name}").addFilter(self._not_ours)
        self._pools = self._pool_classes()
        self._guarded = self._pool_classes(block_private=True)

    def _not_ours(self, record: logging.LogRecord) -> bool:
        return getattr(self.local, "handle", None) is None

    def prepared(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Any:
        """Return a prepared request, made without the checks that its parts have passed."""
        request: Any = self._requests.PreparedRequest()
        request.method, request.url, request.body = method, url, body
        if body is not None:
            headers["Content-Length"] = str(len(body))
        request.headers = self._requests.structures.CaseInsensitiveDict(headers)
        request.hooks = self._hooks.default_hooks()
        request._cookies = self._requests.cookies.RequestsCookieJar()  # auth objects look at it
        return request

    def send(
        self,
        adapter: Any,
        request: Any,
        auth: Any,
        timeout: Any,
        proxies: dict[str, str],
        trusted: str | bool,
    ) -> Any:
        """Send a prepared request through an adapter; auth objects may send more (row C27).

        ``trusted``: see ``authorities``.
        """
        verify = trusted or True  # never switched off
        options = {"stream": True, "timeout": timeout, "verify": verify, "proxies": proxies}
        if auth is not None:
            request.prepare_auth(auth)
        response = adapter.send(request, **options)
        if auth is not None:
            dispatch: Any = self._hooks.dispatch_hook
            response = dispatch("response", request.hooks, response, **options)
        return response

    def environment_proxies(self, url: str) -> dict[str, str]:
        """Return the proxies that the environment names for a URL."""
        return dict(self._utils.get_environ_proxies(url))

    def adapter(self, connections: int, block_private: bool) -> Any:
        """Return a fresh adapter, whose connections attach themselves to handles."""
        pools = self._guarded if block_private else self._pools

        class Adapter(self._adapters.HTTPAdapter):  # type: ignore[name-defined,misc]
            def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
                super().init_poolmanager(*args, **kwargs)
                self.poolmanager.pool_classes_by_scheme = pools

            def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
                manager = super().proxy_manager_for(proxy, **kwargs)
                manager.pool_classes_by_scheme = pools
                return manager

        return Adapter(pool_connections=2, pool_maxsize=connections, max_retries=0)

    def _pool_classes(self, *, block_private: bool = False) -> dict[str, type[Any]]:
        from urllib3 import connection, connectionpool

        local = self.local
        found: dict[str, type[Any]] = {}
        kinds = (
            ("http", connection.HTTPConnection, connectionpool.HTTPConnectionPool),
            ("https", connection.HTTPSConnection, connectionpool.HTTPSConnectionPool),
        )
        for scheme, connection_kind, pool_kind in kinds:
            tracked = _tracked_connection(connection_kind, local, block_private)
            found[scheme] = _tracked_pool(pool_kind, tracked)
        return found


def _tracked_connection(kind: Any, local: Any, block_private: bool) -> type[Any]:
    """Return a connection class that attaches its socket to the handle of its request."""

    class Tracked(kind):  # type: ignore[misc]
        handle: Handle | None = None
        since = 0.0

        def _new_conn(self) -> socket.socket:
            return _dial(self, self.handle or local.handle, block_private)

        def connect(self) -> None:
            self.handle = local.handle
            local.dialled = True
            twin = None
            try:
                super().connect()
            except OSError as error:
                _close_half_made(error)
                raise
            finally:
                # The handshake of TLS goes through another object than _new_conn's: see _dial.
                twin, self.twin = getattr(self, "twin", None), None
                if self.handle is not None:
                    self.handle.attach(self.sock)
                    self.handle.reached = self.handle.reached or self.sock is not None
                if twin is not None:
                    twin.close()

        def request(self, *args: Any, **kwargs: Any) -> Any:
            self.handle = local.handle
            if self.handle is not None:
                self.handle.attach(self.sock)
                self.handle.reached = self.handle.reached or self.sock is not None
            if self.sock is not None:  # it has that of the end of the last response
                self.sock.settimeout(self.timeout)
            result = super().request(*args, **kwargs)
            local.connected = True
            return result

    return Tracked


def _tracked_pool(kind: Any, tracked: type[Any]) -> type[Any]:
    """Return a pool class of such connections, which reuses none that was idle for long."""

    class Pool(kind):  # type: ignore[misc]
        ConnectionCls = tracked

        def _get_conn(self, timeout: float | None = None) -> Any:
            found = super()._get_conn(timeout)
            if found.sock is not None and now() - found.since > IDLE_TIME:
                found.close()  # the server may be closing it right now; it is dialled anew
            return found

        def _put_conn(self, conn: Any) -> None:
            if conn is not None:
                conn.since = now()
                handle, conn.handle = conn.handle, None
                if handle is not None:
                    handle.detach()
            super()._put_conn(conn)

    return Pool


def _dial(conn: Any, handle: Handle | None, block_private: bool) -> socket.socket:
    """Connect to one of a host's addresses; what is attached can be shut down at any moment."""
    found = resolve(conn._dns_host, conn.port, handle or Handle())
    if block_private:
        # What was checked is what is dialled: the name is not resolved again.
        check_addresses(conn.host, [str(info[4][0]) for info in found])
    problem: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            for option in conn.socket_options or ():
                sock.setsockopt(*option)
            sock.settimeout(conn.timeout if isinstance(conn.timeout, (int, float)) else None)
            if handle is not None:
                handle.attach(sock)
            sock.connect(address)
        except OSError as error:
            problem = error
            if handle is not None:
                handle.detach()
            sock.close()
            if handle is not None and handle.ended:
                break
            continue
        if hasattr(conn, "ca_certs") and handle is not None:
            # TLS takes the descriptor over into an object of its own, which nobody can reach until
            # its handshake is done; a second descriptor of the same socket can be shut down.
            conn.twin = sock.dup()
            handle.attach(conn.twin)
        return sock
    raise problem if problem is not None else OSError("the host has no address")


def _close_half_made(error: BaseException) -> None:
    """Close the TLS socket that ``ssl`` was making when its connection ended.

    Where that happens just before the handshake, ``ssl`` leaves it open for the garbage collector.
    """
    import ssl

    trace = error.__traceback__
    while trace is not None:
        made = trace.tb_frame.f_locals.get("self")
        if isinstance(made, ssl.SSLSocket):
            made.close()
        trace = trace.tb_next


@cache
def means() -> Means:
    """Return what HTTP is made with; ``InvalidSpec`` where ``requests`` is not installed."""
    try:
        return Means()
    except ImportError as error:
        missing = error.name or "requests"
    raise InvalidSpec(
        f"url= needs the package {missing!r}, which cannot be imported: pip install {missing}"
    )
