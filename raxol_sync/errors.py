"""Exceptions and JSON-RPC error codes of raxol_sync. Floor 0; pure.

The tree is flat; the groups say who has to act::

    MCPError
      InvalidSpec  InvalidTool  SensitiveToolError  the program was put together wrongly
      InvalidArguments (also a ValueError)  DeploymentError
      NotReady  ConnectFailed  ConnectionLost       there is no usable peer
      ServerExited  SessionRejected
      Busy  MessageTooLarge  BreakerOpen            a bound of ours was reached
      RequestTimeout (also a TimeoutError)          the wait ended
      RPCError  InvalidResponse  InputRequired      what the peer answered
      HandlerFailed (an InputRequired)              a handler of ours gave no usable answer
      HTTPStatusError  RedirectRefused  TargetBlocked   what the peer did, or is
      UnmeteredCall  UnknownPrice                   the caller's own policy
      ToolError                                     a tool's own answer
      ProcessFailed  ProcessDied                    a tool in a process of its own could not answer
    Cancelled (a BaseException, outside the tree)   the request was cancelled

Every exception keeps its facts as attributes and composes its text from them; none holds a
header value, an environment value or an argument value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# JSON-RPC 2.0 and MCP codes.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # up to 2025-11-25 only
URL_ELICITATION_REQUIRED = -32042  # 2025-11-25 only
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

# Codes of our own, outside the range that JSON-RPC and MCP reserve.
AUTHORIZATION_REQUIRED = -31403
BUSY = -31429
CIRCUIT_OPEN = -31503
CALLBACK_TIMEOUT = -31504


class MCPError(Exception):
    """Base of every exception that raxol_sync raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default pickling, as process pools need it, would leave keyword arguments out.
        return _rebuild, (type(self), self.args, dict(self.__dict__))


def _rebuild(kind: type[MCPError], args: tuple[Any, ...], state: dict[str, Any]) -> MCPError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidSpec(MCPError):
    """Raised when a ``Client`` was given arguments that cannot describe a server (row C01)."""


class InvalidTool(MCPError):
    """Raised when a tool, resource or prompt cannot be registered: its name, schema or hints."""


class InvalidArguments(MCPError, ValueError):
    """Raised when a caller's arguments cannot be written as JSON; nothing was sent.

    Attributes:
        path: where the thing is, as in ``arguments.when`` or ``arguments.items[2]``.
        reason: what is wrong with it, and what to do.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path or 'the arguments'}: {self.reason}"


class SensitiveToolError(MCPError):
    """Raised when a server without an authorizer would serve a sensitive tool (row S32).

    Attributes:
        tools: the names of those tools.
    """

    def __init__(self, tools: Sequence[str]) -> None:
        super().__init__(list(tools))
        self.tools = list(tools)

    def __str__(self) -> str:
        return (
            f"sensitive tools need an authorizer: {', '.join(self.tools)}. Say who may call them: "
            "Server(authorizer=..., authorizer_source='configured')"
        )


class NotReady(MCPError):
    """Raised when the session is not usable (yet, or any more).

    Attributes:
        state: the client's state when it was raised: ``starting``, ``initializing``, ``closed``.
        status: the client's whole ``Status``.
    """

    def __init__(self, state: str, *, status: object = None, detail: str = "") -> None:
        super().__init__(state)
        self.state = state
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        text = f"the session is not ready (state: {self.state})"
        return f"{text}: {self.detail}" if self.detail else text


class ConnectFailed(MCPError):
    """Raised when connecting to the server, or the handshake with it, failed.

    Attributes:
        reason: what happened, in words; the causing exception is ``__cause__`` where there is one.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"could not connect: {self.reason}"


class ServerExited(MCPError):
    """Raised when the server's process ended while a request was outstanding (row C16).

    Attributes:
        code: the exit status (negative: killed by that signal), ``None`` when unknown.
        stderr: the last lines that it wrote to its standard error, bounded.
    """

    def __init__(self, code: int | None, stderr: str = "", *, hint: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.stderr = stderr
        self.hint = hint  # what may be wrong, as the end of the sentence

    def __str__(self) -> str:
        tail = f"; its last words on stderr:\n{self.stderr}" if self.stderr else ""
        return f"the server's process {_ending(self.code, 'ended')}{self.hint}{tail}"


class Busy(MCPError):
    """Raised when a bound of ours leaves no room for one more request.

    Attributes:
        scope: which bound (``queue``, ``connection``, ``server``).
        limit: how many it allows.
    """

    def __init__(self, scope: str, limit: int) -> None:
        super().__init__(scope, limit)
        self.scope = scope
        self.limit = limit

    def __str__(self) -> str:
        return f"busy: the {self.scope} allows {self.limit} at once; try again later"


class MessageTooLarge(MCPError):
    """Raised when a message is longer than the limit allows.

    Attributes:
        limit: the largest length that is accepted, in bytes.
    """

    def __init__(self, limit: int, detail: str = "") -> None:
        super().__init__(limit)
        self.limit = limit
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.detail or 'a message'} is longer than {self.limit} bytes (max_message_bytes)"


class RequestTimeout(MCPError, TimeoutError):
    """Raised when a request was not answered within its deadline. Also a ``TimeoutError``.

    Attributes:
        method: the JSON-RPC method.
        timeout: the deadline, in seconds; ``None`` where it is not known.
    """

    def __init__(self, method: str, timeout: float | None) -> None:
        # A TimeoutError is an OSError, which would take two arguments for errno and strerror.
        super().__init__(method)
        self.method = method
        self.timeout = timeout

    def __str__(self) -> str:
        limit = "the time allowed" if self.timeout is None else f"{self.timeout:g} s"
        return f"{self.method} was not answered within {limit}"


class RPCError(MCPError):
    """Raised when the peer answered with a JSON-RPC error (row C11).

    Server callbacks may raise it to answer with exactly this error.

    Attributes:
        code: the error code, an ``int``.
        message: the peer's sentence.
        data: what the peer added, any JSON value or ``None``.
    """

    def __init__(self, code: int, message: str, data: object = None, *, hint: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.data = data
        self.hint = hint  # ours: what to do, as the end of the sentence

    def __str__(self) -> str:
        return f"{self.message} ({self.code}){self.hint}"


class InvalidResponse(MCPError):
    """Raised when a result does not have the shape that its method promises (row C11).

    Attributes:
        method: the JSON-RPC method.
        detail: what was wrong with it.
    """

    def __init__(self, method: str, detail: str = "") -> None:
        super().__init__(method)
        self.method = method
        self.detail = detail

    def __str__(self) -> str:
        text = f"the server's answer to {self.method} is not valid"
        return f"{text}: {self.detail}" if self.detail else text


class InputRequired(MCPError):
    """Raised when a stateless server asks for input that no handler was given for (row C28).

    Attributes:
        requests: the server's input requests by key, as they came.
    """

    def __init__(self, requests: dict[str, Any]) -> None:
        super().__init__(sorted(requests))
        self.requests = requests

    def __str__(self) -> str:
        given = [request for request in self.requests.values() if isinstance(request, dict)]
        kinds = sorted({str(request.get("method")) for request in given})
        return f"the server asks for input and no handler was given for it: {', '.join(kinds)}"


class HandlerFailed(InputRequired):
    """Raised when a handler gave no usable answer; what it raised is the ``__cause__`` (row C28).

    Attributes:
        reason: what the handler did, without any value of its answer.
    """

    def __init__(self, requests: dict[str, Any], reason: str) -> None:
        super().__init__(requests)
        self.reason = reason

    def __str__(self) -> str:
        return f"the server asks for input and got no answer: {self.reason}"


class ConnectionLost(ConnectFailed):
    """Raised when a connection ended before the answer to a request had come.

    Whether the server has worked on the request is not known.
    """

    def __str__(self) -> str:
        return f"the connection was lost: {self.reason}"


class SessionRejected(MCPError):
    """Raised when an HTTP server no longer knew the session of a request (row C17).

    The server has not run the request. The session is established anew.
    """

    def __str__(self) -> str:
        return "the server no longer knows the session; it is being established anew"


class BreakerOpen(MCPError):
    """Raised when an origin failed so often that it is left alone for a while (row C24).

    Attributes:
        origin: scheme, host and port.
        retry_after: in how many seconds the next request has a chance.
        last: how the last request failed, in words.
    """

    def __init__(self, origin: str, retry_after: float, last: str = "") -> None:
        super().__init__(origin)
        self.origin = origin
        self.retry_after = retry_after
        self.last = last

    def __str__(self) -> str:
        last = f" (last: {self.last})" if self.last else ""
        return f"{self.origin} keeps failing{last}; the next attempt is in {self.retry_after:.1f} s"


class HTTPStatusError(MCPError):
    """Raised when an HTTP server answered a request with a status and no JSON-RPC message.

    Attributes:
        status: the HTTP status code.
    """

    def __init__(self, status: int, detail: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        text = f"the server answered with HTTP status {self.status}"
        return f"{text}: {self.detail}" if self.detail else text


class RedirectRefused(MCPError):
    """Raised when a server answered with a redirect, which is never followed (row C23).

    Attributes:
        status: the HTTP status code.
        location: where it points to, without userinfo and query.
    """

    def __init__(self, status: int, location: str) -> None:
        super().__init__(status)
        self.status = status
        self.location = location

    def __str__(self) -> str:
        where = f" to {self.location}" if self.location else ""
        return f"the server redirects{where} (HTTP {self.status}); set url= to the final address"


class TargetBlocked(MCPError):
    """Raised when a URL or an address may not be dialled (row C23).

    Attributes:
        host: its host.
        reason: which rule forbids it.
    """

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(host)
        self.host = host
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.host} may not be dialled: {self.reason}"


class BlockedSpec(InvalidSpec, TargetBlocked):
    """Raised when a ``Client`` was given a URL that may not be dialled: it is both of its bases."""


class UnmeteredCall(MCPError):
    """Raised when a priced tool is called without a usable reservation; nothing was sent (row C25).

    Attributes:
        tool: its name.
        detail: what is wrong with the reservation, where there is one.
    """

    def __init__(self, tool: str, detail: str = "no reservation was given") -> None:
        super().__init__(tool)
        self.tool = tool
        self.detail = detail

    def __str__(self) -> str:
        return f"the tool {self.tool!r} has a price: {self.detail}"


class UnknownPrice(MCPError):
    """Raised when calls are metered and a tool has no known price; nothing was sent (row C25).

    Attributes:
        tool: its name.
    """

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool

    def __str__(self) -> str:
        return f"the tool {self.tool!r} has no known price: give it one in prices="


class ToolError(MCPError):
    """Raise it in a callback to answer the caller with a message, word for word (row S45)."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class ProcessFailed(MCPError):
    """Raised when a tool could not run in its process, or not tell what came of it; in words."""


class ProcessDied(ProcessFailed):
    """Raised when a tool's process ended before the tool had returned.

    Attributes:
        code: its exit status; negative: killed by that signal; ``None``: not known.
    """

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return f"the tool's process {_ending(self.code, 'died')}"


def _ending(code: int | None, unknown: str) -> str:
    plain = unknown if code is None else f"exited with status {code}"
    return f"was killed by signal {-code}" if code is not None and code < 0 else plain


class Cancelled(BaseException):
    """Raised inside a callback whose request was cancelled or timed out (row S18).

    A ``BaseException``, so that a callback that catches every ``Exception`` does not swallow it.
    """
