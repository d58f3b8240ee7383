"""Asking the embedder who a request comes from. Floor 3."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import INTERNAL_ERROR
from raxol_sync.hooks import is_unrun
from raxol_sync.server.http.options import Options
from raxol_sync.server.http.replies import Refused, refusal

_log = logging.getLogger("raxol_sync.server")


class _NoPrincipal(TypeError):
    """What the hook returned tells nobody apart; its text is ours and may be logged."""


def principal_of(options: Options, environ: Mapping[str, Any]) -> object:
    """Return who a request comes from, ``None`` where nobody is asked.

    Raises:
        Refused: 401 for a client that is not known; 500 if the hook fails.
    """
    if options.authenticate is None:
        return None
    principal: object = None
    known = False
    try:
        principal = _current(options.authenticate(environ))
        known = not _is_stranger(principal)
        hash(principal)
    except PermissionError:
        raise Refused(_unknown(options)) from None
    except Exception as error:  # user code: this request fails, others go on
        # Not the exception's words: they may hold the token that was looked at.
        trace = "".join(traceback.format_tb(error.__traceback__))
        name, hint = type(error).__name__, ""
        if isinstance(error, _NoPrincipal):
            name, hint = "TypeError", f": {error}"
        elif isinstance(error, TypeError) and "unhashable" in str(error):
            hint = ": it must return who it is, as something hashable, such as the user's name"
        _log.error("! authenticate failed with %s%s\n%s", name, hint, trace)
        reply = refusal(500, "the client's identity could not be checked", code=INTERNAL_ERROR)
        raise Refused(reply) from None
    if not known:
        raise Refused(_unknown(options))
    return principal


def _current(principal: Any) -> object:
    """Return what a proxy stands for: Flask's ``current_user`` is another one in each thread."""
    if type(principal) is str:
        return principal
    look = getattr(type(principal), "_get_current_object", None)
    return principal if look is None else principal._get_current_object()


def _is_stranger(principal: Any) -> bool:
    """Return whether it is nobody, or an object that stands for one (Django, Flask-Login).

    ``None``, ``False`` and ``""`` are also what ``token == known and user`` and
    ``session.get("user", "")`` give for a stranger.

    Raises:
        _NoPrincipal: it is what a hook returns by mistake, and would be the same for everybody.
    """
    if principal is None or principal is False or principal == "":
        return True
    if type(principal) is str:
        return False
    if principal is True:
        raise _NoPrincipal("a bool tells nobody apart: it must return who it is, such as a name")
    if is_unrun(principal):
        raise _NoPrincipal(
            f"it returned a {type(principal).__name__}, so it was not run: write `def` instead of "
            "`async def`, and return instead of yield"
        )
    return _flag(principal, "is_authenticated") is False or _flag(principal, "is_anonymous") is True


def _flag(principal: Any, name: str) -> bool | None:
    """Return what a user object says of itself; in older releases these are methods."""
    value = getattr(principal, name, None)
    if callable(value):
        value = value()
    return None if value is None else bool(value)


def _unknown(options: Options) -> Any:
    headers = [("WWW-Authenticate", options.www_authenticate)]
    return refusal(401, "this request needs valid credentials", headers=headers)
