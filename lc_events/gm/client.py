"""The operator's side of `sedna/apply`: say what is wanted, wait until the global manager has it on disk."""

from __future__ import annotations

import time
from uuid import uuid4

from lc_events.errors import BrokerError, LcError, NotFoundError, RefusedError
from lc_events.gm.ledger import SOURCE
from lc_events.gm.requests import read_identity, read_resource
from lc_events.messages.json import JsonObject, dumps, loads_object
from lc_events.messages.names import DATASET_KIND, JOB_KIND
from lc_events.mqtt.oneshot import request
from lc_events.mqtt.packets import Publication
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics

__all__ = ["apply_resource", "check_resource", "delete_resource"]

_KINDS = {
    **dict.fromkeys((JOB_KIND, "lifelonglearningjobs", "ll", "job", "jobs"), "LifelongLearningJob"),
    **dict.fromkeys((DATASET_KIND, "datasets"), "Dataset"),
}
"""Words for a kind: its own, Sedna's plural and short name, and what one says."""

_ASK_AGAIN_SECONDS = 1.0


def check_resource(resource: JsonObject) -> None:
    """Check a manifest before any is sent; RefusedError as the global manager would answer."""
    read_resource(resource)


def apply_resource(mqtt: MqttSettings, topics: Topics, resource: JsonObject, *, timeout: float = 10.0) -> JsonObject:
    """Have a resource taken; `{"kind", "namespace", "name", "result", "generation", "version", "nodes", "note"?}`.

    `result` is `created`, `configured` or `unchanged`. Raises RefusedError with the global manager's reason,
    BrokerError if the broker cannot be reached or no answer came within `timeout` seconds.
    """
    return _ask(mqtt, topics, "insert", resource, timeout)


def delete_resource(
    mqtt: MqttSettings, topics: Topics, kind: str, namespace: str, name: str, *, timeout: float = 10.0
) -> JsonObject:
    """Have a resource taken back; the answer's `result` is `deleted`. Raises as `apply_resource`, or NotFoundError."""
    if kind.lower() not in _KINDS:
        raise RefusedError(f"kind {kind!r} is not LifelongLearningJob or Dataset", code="kind")
    resource: JsonObject = {"kind": _KINDS[kind.lower()], "metadata": {"namespace": namespace, "name": name}}
    read_identity(resource)
    return _ask(mqtt, topics, "delete", resource, timeout)


def _ask(mqtt: MqttSettings, topics: Topics, operation: str, resource: JsonObject, timeout: float) -> JsonObject:
    request_id = uuid4().hex
    asker = f"operator-{request_id[:16]}"
    question = {"request_id": request_id, "reply_to": asker, "operation": operation, "resource": resource}
    publication = Publication(topics.apply(request_id), dumps(question))
    answered = _answer(mqtt, publication, topics.answer(SOURCE, asker), timeout)
    data, error = answered.get("data"), answered.get("error")
    if answered.get("status") == "ok" and isinstance(data, dict):
        return data
    raise _failure(error if isinstance(error, dict) else {})


def _answer(mqtt: MqttSettings, publication: Publication, answers: str, timeout: float) -> JsonObject:
    """Ask again and again: one who is just starting has not subscribed yet; a repeat has no second effect."""
    deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        try:
            return loads_object(request(mqtt, publication, answers, timeout=min(left, _ASK_AGAIN_SECONDS)).payload)
        except BrokerError as error:
            if error.code != "no_answer":
                raise
    raise BrokerError(
        f"no global manager answered on {mqtt.display_url} within {timeout:g} s: does `lc-events gm` run there? "
        "One that is only away for a moment will find the request when it is back.",
        code="no_answer",
    )


def _failure(error: JsonObject) -> LcError:
    code, message = str(error.get("code")), str(error.get("message"))
    return NotFoundError(message) if code == NotFoundError.default_code else RefusedError(message, code=code)
