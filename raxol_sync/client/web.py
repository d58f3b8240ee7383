"""HTTP requests to one server (rows C04, C10, C21, C23). Floor 3.

Each request runs on its caller's thread and can be ended from another: see ``handle``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from raxol_sync.client.handle import Handle, WebError
from raxol_sync.client.means import authorities, explain, means, unanswered
from raxol_sync.client.targets import HttpTarget, is_loopback
from raxol_sync.errors import MessageTooLarge

CONNECT_TIME = 30.0  # seconds for one address to accept, and for TLS
_CHUNK = 1 << 16  # bytes
_DRAIN_TIME = 0.25  # seconds for a stream to end after its last message
_DRAIN_READS = 3  # with as much time each


class Answer:
    """A response whose body has not been read. For one thread."""

    def __init__(self, response: Any, handle: Handle) -> None:
        self._raw = response.raw
        self._handle = handle
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers

    @property
    def kind(self) -> str:
        """The content type, lower case, without parameters."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it comes in; ``WebError`` where it breaks off."""
        if self.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            self.close()
            # A few bytes may stand for any amount of data, and we asked for none of this.
            raise WebError(True, "the server compressed its answer, which was not asked for")
        while True:
            chunk, problem = b"", None
            try:
                chunk = self._raw.read1(_CHUNK, decode_content=False)
            except Exception as error:  # whatever the means raise; told apart by explain
                problem = explain(error, connected=True)
            if problem is not None:
                self.close()
                raise problem
            if not chunk:
                self.finish()
                return
            yield chunk

    def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            MessageTooLarge: it is longer than ``limit`` bytes.
            WebError: it broke off.
        """
        parts: list[bytes] = []
        size = 0
        for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                self.close()
                raise MessageTooLarge(limit, "an HTTP response")
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def drain(self) -> None:
        """Read what is left of what has said all, if it ends soon, else close it."""
        with suppress(Exception):  # the answer is there; only the connection's reuse is at stake
            connection = self._raw.connection or self._raw._connection
            sock = connection.sock if connection is not None else None
            if sock is not None:
                sock.settimeout(_DRAIN_TIME)
            for _ in range(_DRAIN_READS):
                if not self._raw.read1(_CHUNK, decode_content=False):
                    self.finish()
                    return
        self.close()

    def finish(self) -> None:
        """The body was read to its end: give the connection back."""
        with suppress(Exception):  # as in drain
            self._raw.release_conn()

    def close(self) -> None:
        """Close the connection: nothing more is wanted of it. Idempotent."""
        with suppress(Exception):  # closing what is broken may raise anything
            self._raw.close()
        with suppress(Exception):
            self._raw.release_conn()
        self._handle.detach()


class WebOptions(NamedTuple):
    """How requests are made. Its values may be secrets: see ``__repr__``.

    Attributes:
        headers: sent with every request.
        auth: a ``requests`` auth object, or ``None`` (row C27).
        proxies: as ``requests`` takes them; ``None``: the environment's, for other hosts.
        block_private: only public addresses are dialled, without a proxy.
        connections: how many may be kept.
    """

    headers: Mapping[str, str]
    auth: Any
    proxies: Mapping[str, str] | None
    block_private: bool
    connections: int

    def __repr__(self) -> str:
        return f"<WebOptions with {len(self.headers)} headers>"


class Web:
    """A pool of connections to one server. Thread-safe."""

    def __init__(self, target: HttpTarget, options: WebOptions) -> None:
        """Nothing is dialled yet.

        Raises:
            InvalidSpec: ``requests`` cannot be imported.
            ConnectFailed: the environment names certificates to trust that cannot be read.
        """
        self._means = means()
        self._target = target
        self._options = options
        headers = dict(options.headers)
        if target.authorization and "authorization" not in {name.lower() for name in headers}:
            headers["Authorization"] = target.authorization
        self._base = {
            "User-Agent": "raxol_sync",
            **headers,
            "Accept-Encoding": "identity",
            "Connection": "keep-alive",
        }
        self._adapter = self._means.adapter(options.connections, options.block_private)
        self._proxies = self._choose_proxies()
        self._trusted = authorities() if target.scheme == "https" else True

    def _choose_proxies(self) -> dict[str, str]:
        if self._options.block_private:
            return {}
        if self._options.proxies is not None:
            return dict(self._options.proxies)
        if is_loopback(self._target.host):
            return {}
        return self._means.environment_proxies(self._target.url)

    def send(
        self,
        handle: Handle,
        method: str,
        target: HttpTarget,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Answer:
        """Make a request on this thread; return its response once the headers are there.

        Args:
            handle: what ends it from another thread.
            method: of HTTP.
            target: where to.
            headers: in addition to those of every request.
            body: what is sent.

        Raises:
            WebError: there is no response.
        """
        request = self._means.prepared(method, target.url, {**self._base, **headers}, body)
        problem: WebError | None = None
        local = self._means.local
        local.handle, local.connected, local.dialled = handle, False, False
        try:
            if handle.ended:
                problem = WebError(False, "the request was given up")
            else:
                response = self._means.send(
                    self._adapter,
                    request,
                    self._options.auth,
                    (CONNECT_TIME, None),  # how long to read is up to the handle
                    self._proxies,
                    self._trusted,
                )
        except Exception as error:  # whatever the means raise; told apart by explain
            problem = explain(error, connected=local.connected)
            problem.stale = not local.dialled and unanswered(error)
        finally:
            local.handle = None
        # Raised here, outside of the handler, so that nothing with a URL in it hangs on it.
        if problem is not None:
            handle.detach()
            raise problem
        return Answer(response, handle)

    def close(self) -> None:
        """Close the connections that are idle; the others end with their requests."""
        # The adapter would leave that to the garbage collector.
        for manager in (self._adapter.poolmanager, *self._adapter.proxy_manager.values()):
            for key in list(manager.pools.keys()):
                pool = manager.pools.get(key)
                if pool is not None:
                    pool.close()
        self._adapter.close()
