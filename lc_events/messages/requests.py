"""Requests over MQTT and their answers (CONTRACT section 7); `sedna/apply` answers in the same envelope."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lc_events.errors import RefusedError
from lc_events.messages.gm import explain
from lc_events.messages.json import JsonObject, dumps, loads_object
from lc_events.messages.names import is_word
from lc_events.messages.resources import Namespace, ResourceName

__all__ = ["Answer", "Ask", "read_addressee", "read_ask", "write_answer"]

Version = Annotated[int, Field(ge=1, le=2**63 - 1)]

_LONGEST_REQUEST_ID = 256


class Ask(BaseModel):
    """A question about a job; which fields count depends on the verb."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    request_id: Annotated[str, StringConstraints(max_length=_LONGEST_REQUEST_ID)] | None = None
    reply_to: str | None = None
    namespace: Namespace = "default"
    name: ResourceName
    at_version: Version | None = None
    at_time: Annotated[str, StringConstraints(max_length=64)] | None = None
    from_version: Version | None = None
    to_version: Version | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    raw: bool = False


class AnswerError(BaseModel):
    """Why there is no answer: `code` is stable, `message` says what to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    message: str


class Answer(BaseModel):
    """An answer, at most 256 KiB."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    request_id: str | None
    status: Literal["ok", "error"]
    error: AnswerError | None
    data: Any = None


def read_ask(payload: bytes) -> Ask:
    """Read a question; RefusedError `malformed` says which field is wrong."""
    try:
        return Ask.model_validate(loads_object(payload))
    except ValidationError as error:
        raise RefusedError(explain(error)) from None


def read_addressee(payload: bytes) -> tuple[str | None, str | None]:
    """`request_id` and `reply_to`, as far as they can be read; RefusedError if `reply_to` may not stand in a topic.

    A `request_id` that is longer than 256 characters is none: no answer repeats it.
    """
    data: JsonObject = loads_object(payload)
    request_id, reply_to = data.get("request_id"), data.get("reply_to")
    if reply_to is not None and not (isinstance(reply_to, str) and is_word(reply_to)):
        raise RefusedError("reply_to must be 1 to 64 of A-Z a-z 0-9 _ . -", code="reply_to")
    if not isinstance(request_id, str) or len(request_id) > _LONGEST_REQUEST_ID:
        request_id = None
    return request_id, reply_to


def write_answer(request_id: str | None, *, data: object = None, error: tuple[str, str] | None = None) -> bytes:
    """An answer with data, or with an error's code and message."""
    return dumps(
        {
            "request_id": request_id,
            "status": "ok" if error is None else "error",
            "error": None if error is None else {"code": error[0], "message": error[1]},
            "data": data,
        }
    )
