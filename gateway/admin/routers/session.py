"""Owns signing in and out, and who one is."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Depends, Request, Response, status

from gateway.admin.edge import AdminRoute
from gateway.admin.guard import COOKIE, Administrator, own_origin
from gateway.admin.schemas.access import Me, SessionOut, SignIn
from gateway.admin.schemas.common import ErrorBody
from gateway.admin.session import SESSION_S, is_admin_token, is_session, new_session
from gateway.core.errors import StepdownError

router = APIRouter(
    tags=["session"],
    route_class=AdminRoute,
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
    generate_unique_id_function=lambda route: route.name,
)


@router.post("/session", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Depends(own_origin)])
def sign_in(body: SignIn, request: Request) -> Response:
    """Trades the admin token for a session cookie."""
    if not is_admin_token(body.token):
        raise StepdownError(
            401,
            "admin_token_wrong",
            "This is not the admin token of this installation.",
            hint="`stepdown up` prints it; it lies in STEPDOWN_HOME/secrets/admin.token.",
            param="token",
        )
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    response.set_cookie(
        COOKIE,
        new_session(),
        max_age=SESSION_S,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.get("/session")
def get_session(request: Request) -> SessionOut:
    """Whether the cookie is a session's."""
    return SessionOut(signed_in=is_session(request.cookies.get(COOKIE, "")))


@router.delete("/session", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Depends(own_origin)])
def sign_out(request: Request) -> Response:
    """Forgets the session cookie."""
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return response


@router.get("/me")
def me(request: Request, via: Administrator) -> Me:
    """Who is signed in, and what apps set as their base URL."""
    return Me(via=via, version=version("stepdown"), base_url=f"{request.url.scheme}://{request.headers['host']}/v1")
