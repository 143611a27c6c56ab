"""Owns the gate of the admin API: which Host, which Origin, whose token. Must hold no business rule.

A loopback address alone stops neither a page on another site that posts to it (CSRF) nor a name that resolves to
it (DNS rebinding): so the Host header must be one of ours, and a write that a cookie speaks for must come from
our own page.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from gateway.admin.session import is_admin_token, is_session
from gateway.core.errors import StepdownError
from gateway.core.settings import settings

COOKIE = "stepdown_session"
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_SAFE = {"GET", "HEAD", "OPTIONS"}

_bearer = HTTPBearer(auto_error=False, scheme_name="adminToken", description="The token `stepdown up` prints.")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False, scheme_name="session", description="From POST /api/session.")


def known_host(request: Request) -> None:
    """Refuses a Host header that is neither loopback nor configured (421)."""
    host = urlsplit("//" + request.headers.get("host", "")).hostname or ""
    if host not in _LOOPBACK | {settings().host} | set(settings().allowed_hosts.replace(",", " ").split()):
        raise StepdownError(
            421,
            "host_not_allowed",
            f"This server does not answer for the host name {host!r}.",
            hint="Open it by 127.0.0.1 or localhost, or add the name to STEPDOWN_ALLOWED_HOSTS.",
        )


def own_origin(request: Request) -> None:
    """Refuses a write whose Origin is another site's (403). Browsers send Origin with every write."""
    origin = request.headers.get("origin", "")
    if request.method not in _SAFE and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise StepdownError(
            403,
            "origin_not_allowed",
            f"A {request.method} from origin {origin or '(none)'!r} is refused: it is not this dashboard's.",
            hint="Scripts authenticate with `Authorization: Bearer <admin token>` instead of the cookie.",
        )


def administrator(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    cookie: Annotated[str | None, Depends(_cookie)],
) -> Literal["token", "session"]:
    """How the caller proved to be the administrator. Raises 401, or 403 for a cookie's write from elsewhere."""
    if bearer is not None:
        if is_admin_token(bearer.credentials):
            return "token"
        raise _unauthenticated("The admin token is not this installation's.")
    if cookie is None:
        raise _unauthenticated("This needs the admin token.")
    if not is_session(cookie):
        raise _unauthenticated("The session has expired.")
    own_origin(request)
    return "session"


def _unauthenticated(message: str) -> StepdownError:
    return StepdownError(
        401,
        "admin_token_required",
        message,
        hint="`stepdown up` prints it; it lies in STEPDOWN_HOME/secrets/admin.token.",
    )


Administrator = Annotated[Literal["token", "session"], Depends(administrator)]
