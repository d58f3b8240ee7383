"""Asking the embedder who a request comes from. Floor 3."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import INTERNAL_ERROR
from raxol_sync.server.http.options import Options
from raxol_sync.server.http.replies import Refused, refusal

_log = logging.getLogger("raxol_sync.server")


def principal_of(options: Options, environ: Mapping[str, Any]) -> object:
    """Return who a request comes from, ``None`` where nobody is asked.

    Raises:
        Refused: 401 for a client that is not known; 500 if the hook fails.
    """
    if options.authenticate is None:
        return None
    principal: object = None
    try:
        principal = options.authenticate(environ)
        if principal is True:
            raise TypeError("a bool tells nobody apart")
        hash(principal)
    except PermissionError:
        raise Refused(_unknown(options)) from None
    except Exception as error:  # user code: this request fails, others go on
        # Not the exception's words: they may hold the token that was looked at.
        trace = "".join(traceback.format_tb(error.__traceback__))
        hint = ""
        if isinstance(error, TypeError) and ("unhashable" in str(error) or principal is True):
            hint = ": it must return who it is, as something hashable, such as the user's name"
        _log.error("! authenticate failed with %s%s\n%s", type(error).__name__, hint, trace)
        reply = refusal(500, "the client's identity could not be checked", code=INTERNAL_ERROR)
        raise Refused(reply) from None
    if principal is None or principal is False or principal == "":
        # Also what `token == known and user` and `session.get("user", "")` give for a stranger.
        raise Refused(_unknown(options))
    return principal


def _unknown(options: Options) -> Any:
    headers = [("WWW-Authenticate", options.www_authenticate)]
    return refusal(401, "this request needs valid credentials", headers=headers)
