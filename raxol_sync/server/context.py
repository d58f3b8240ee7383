"""What a callback sees of the request that it serves. Floor 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raxol_sync.content import Message
from raxol_sync.errors import Cancelled
from raxol_sync.inputs import Answer, Elicit, Question, Root, Roots, Sample, SampleResult
from raxol_sync.protocol.modern import LOG_LEVELS
from raxol_sync.protocol.wire import RequestId, notification
from raxol_sync.schema import to_json
from raxol_sync.server.app import App
from raxol_sync.server.asking import ask
from raxol_sync.server.connections import Call
from raxol_sync.values import ElicitResult

_RANK = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class Context:
    """The request that a callback serves, and the way back to its client.

    A parameter annotated ``Context`` is given one; it is not part of the tool's schema. All members
    may be used from any thread, until the callback returns. Once the request was cancelled or timed
    out, whatever talks to the client raises ``Cancelled`` (row S18).
    """

    __slots__ = ("_app", "_asked", "_call", "_kept")

    def __init__(self, call: Call, app: App) -> None:
        self._call = call
        self._app = app
        self._asked = 0
        self._kept: dict[str, Any] = call.round.kept if call.round is not None else {}

    def __repr__(self) -> str:
        return f"<Context of {self._call.method} {self._call.id!r}>"

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the work is; nothing is sent if it did not ask to be told.

        Args:
            done: a number that grows with each call; one that does not grow is left out, because
                the specification wants each notification larger than the one before.
            total: what ``done`` grows to, if that is known.
            message: a sentence for people.

        Raises:
            TypeError: ``done`` or ``total`` is no number.
            ValueError: one of them is not finite.
            Cancelled: the request was cancelled or timed out.
        """
        self.check_cancelled()
        call = self._call
        done = _finite("done", done)
        params: dict[str, Any] = {"progressToken": call.progress_token, "progress": done}
        if total is not None:
            params["total"] = _finite("total", total)
        if message is not None:
            params["message"] = str(message)
        if call.progress_token is not None:
            self._app.engine.push(
                call, notification("notifications/progress", params), progress=done
            )

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Send the client a log message, if it wants that level (row S11).

        Args:
            level: one of ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``,
                ``alert``, ``emergency``.
            data: any JSON value.
            logger: the name of what logs.

        Raises:
            ValueError: there is no such level.
            TypeError: ``data`` cannot be sent as JSON.
            Cancelled: the request was cancelled or timed out.
        """
        if level not in _RANK:
            raise ValueError(f"level must be one of {', '.join(LOG_LEVELS)}")
        self.check_cancelled()
        envelope = self._call.envelope
        least = self._call.conn.log_level if envelope is None else envelope.log_level
        if least is None or _RANK[level] < _RANK[least]:
            return
        params: dict[str, Any] = {"level": level, "data": to_json(data)}
        if logger is not None:
            params["logger"] = str(logger)
        self._app.engine.push(self._call, notification("notifications/message", params))

    def elicit(
        self, message: str, schema: Mapping[str, Any], *, key: str | None = None
    ) -> ElicitResult:
        """Ask the person at the client to fill in a form.

        In a legacy session the callback waits for the answer, at most ``elicitation_timeout``
        seconds. In the stateless era its run ends here; the client's retry runs it again from its
        start, and this call returns the answer: what must not happen twice before it goes into
        ``once``.

        Args:
            message: what the person is asked.
            schema: a JSON Schema of type object with flat properties; see ``Elicit``.
            key: what tells this question from others of the same request; by default its turn.

        Raises:
            ValueError: the schema is no form.
            RPCError: the client cannot be asked this (-32021), or answered with an error.
            InvalidResponse: the answer does not fit the schema.
            RequestTimeout: there was none in time.
            Cancelled: the request was cancelled or timed out.
        """
        answer = self._ask_one("elicit", Elicit(message, schema), key)
        assert isinstance(answer, ElicitResult)  # read_answer made it
        return answer

    def elicit_url(
        self, message: str, url: str, *, key: str | None = None, elicitation_id: str | None = None
    ) -> ElicitResult:
        """Ask the person to visit a page; the answer says only whether they agreed to.

        Since revision 2025-11-25, where ``Server.elicitation_completed(elicitation_id)`` tells the
        client later that the visit has ended. Raises as ``elicit`` does.
        """
        question = Elicit(message, url=url, elicitation_id=elicitation_id)
        answer = self._ask_one("elicit-url", question, key)
        assert isinstance(answer, ElicitResult)  # read_answer made it
        return answer

    def sample(
        self,
        messages: str | Sequence[Message | str],
        *,
        max_tokens: int = 1024,
        key: str | None = None,
        **options: Any,
    ) -> SampleResult:
        """Ask the client's model; ``options`` are more params, as the protocol names them.

        With ``tools=`` (``Tool`` objects, or mappings of the wire's form) the answer may hold
        ``tool_uses``; only clients that declare ``sampling.tools`` can be asked so. Raises as
        ``elicit`` does.
        """
        answer = self._ask_one("sample", Sample(messages, max_tokens, options), key)
        assert isinstance(answer, SampleResult)  # read_answer made it
        return answer

    def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Ask for the folders that the client works in. Raises as ``elicit`` does."""
        answer = self._ask_one("roots", Roots(), key)
        assert isinstance(answer, list)  # read_answer made it
        return answer

    def ask(self, questions: Mapping[str, Question]) -> dict[str, Answer]:
        """Ask several things at once; return the answers by the questions' keys.

        Raises as ``elicit`` does, and ``ValueError`` for more than 16 or a reserved key.
        """
        self.check_cancelled()
        return ask(self._app, self._call, questions)

    def once(self, key: str, action: Callable[[], Any]) -> Any:
        """Do something once for this request, however often its callback is run; return the result.

        In the stateless era a question runs the callback again from its start: what it did before
        the question is done again, unless it is done in here. The result travels through the client
        meanwhile, signed but readable: no secrets. Call it from one thread at a time.

        Args:
            key: tells this action from others of the same request.
            action: called without arguments, the first time; if it raises, the next time too.

        Returns:
            What it returned, as a JSON value, each time.

        Raises:
            TypeError: that is no JSON value.
        """
        if key not in self._kept:
            self._kept[key] = to_json(action())
        return self._kept[key]

    def close_stream(self, retry: float | None = None) -> None:
        """End the event stream of the answer early; the client comes back for the rest of it.

        In HTTP sessions since revision 2025-11-25, for work that takes long: no connection is held
        meanwhile. Elsewhere nothing happens. The callback goes on as before.

        Args:
            retry: after how many seconds the client shall come back; by default the server's.

        Raises:
            ValueError: ``retry`` is negative or not finite.
            Cancelled: the request was cancelled or timed out.
        """
        from raxol_sync.server.channel import Channel  # HTTP's; other servers do not load it

        if retry is not None and _finite("retry", retry) < 0:
            raise ValueError("retry must not be negative")
        self.check_cancelled()
        box = self._call.outbox
        if isinstance(box, Channel) and box.pollable:
            box.interrupt(retry)

    def _ask_one(self, kind: str, question: Question, key: str | None) -> Answer:
        self._asked += 1
        name = key if key is not None else f"{kind}-{self._asked}"
        return self.ask({name: question})[name]

    @property
    def cancelled(self) -> bool:
        """Whether the callback should stop: its request was cancelled, timed out, or is gone."""
        return self._call.cancelled

    def check_cancelled(self) -> None:
        """Raise ``Cancelled`` if the callback should stop; call it in long loops."""
        if self._call.cancelled:
            raise Cancelled(f"{self._call.method} was cancelled")

    @property
    def conn_id(self) -> object:
        """The connection's id, as its transport chose it."""
        return self._call.conn.conn_id

    @property
    def request_id(self) -> RequestId:
        """The request's JSON-RPC id."""
        return self._call.id

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """What the client says of itself (``name``, ``version``), unverified, or ``None``."""
        envelope = self._call.envelope
        return self._call.conn.client_info if envelope is None else envelope.client_info

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client declares that it can do, ``{}`` if nothing."""
        envelope = self._call.envelope
        declared = self._call.conn.capabilities if envelope is None else envelope.capabilities
        return declared or {}

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta``, ``{}`` without one."""
        return self._call.meta

    @property
    def principal(self) -> object:
        """Who the transport verified the client to be; over stdio and in process ``None``."""
        return self._call.principal

    @property
    def environ(self) -> Mapping[str, Any] | None:
        """The WSGI environ of the request; over stdio and in process ``None``."""
        visit = self._call.visit
        return visit.environ if visit is not None else None


def _finite(name: str, value: float) -> float:
    """Return a number that JSON can hold; other number types (numpy's, say) as a ``float``."""
    number = value if type(value) in (int, float) else float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number")
    return number
