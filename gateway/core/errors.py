"""Owns the one exception that carries its own HTTP answer. Must not know any route."""

from __future__ import annotations

from typing import Any


class StepdownError(Exception):
    """A failure worth telling the user: what happened, which value, what to do.

    `status` is the HTTP status, `code` a stable machine-readable word, `hint` the next step,
    `param` the request field at fault.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.param = param

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    @property
    def kind(self) -> str:
        """OpenAI's `error.type` for this status."""
        if self.status == 401:
            return "authentication_error"
        if self.status == 429:
            return "rate_limit_error"
        return "invalid_request_error" if self.status < 500 else "server_error"

    def openai_body(self) -> dict[str, Any]:
        """The error in the shape that OpenAI's clients parse."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}


def not_found(what: str, value: object) -> StepdownError:
    """404 for a row that does not exist in this project."""
    where, hint = ("", "Check the id.") if what == "project" else (" in this project", "Check the id and the project.")
    return StepdownError(404, f"{what}_not_found", f"There is no {what} {value}{where}.", hint=hint)
