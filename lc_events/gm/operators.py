"""What operators ask of the global manager: take a resource, or take it back."""

from __future__ import annotations

import logging
from uuid import uuid4

from lc_events.application.recorder import Known
from lc_events.domain.conditions import digest
from lc_events.errors import BrokerError, NotFoundError, RefusedError
from lc_events.gm import decisions
from lc_events.gm.deliveries import holders
from lc_events.gm.desk import MAX_BYTES, Desk
from lc_events.gm.job import GmJob
from lc_events.gm.ledger import SOURCE, Changes, State
from lc_events.gm.requests import (
    ApplyRequest,
    Named,
    read_identity,
    read_request,
    read_resource,
)
from lc_events.messages.json import Json, JsonObject, dumps, loads_object
from lc_events.messages.names import DATASET_KIND, JOB_KIND, is_word, stream_id
from lc_events.messages.requests import write_answer
from lc_events.messages.secrets import separate
from lc_events.mqtt.packets import Publication, Received
from lc_events.mqtt.topics import ParsedTopic, TopicKind

__all__ = ["Operators"]

_log = logging.getLogger("lc_events.gm")


class Operators:
    """Carries out `sedna/apply/REQUEST`, and answers where the operator wants it: `reply_to`, or MQTT 5's own way."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def take(self, topic: ParsedTopic, received: Received) -> None:
        """Carry out a request and answer; StoreError or OSError if it could not be saved: then try again."""
        data: JsonObject = {}
        request_id = topic.request
        try:
            data = _read(received)
            request = read_request(data)
            request_id = request.request_id or topic.request
            payload = write_answer(request_id, data=self._carry_out(request))
        except (RefusedError, NotFoundError) as error:
            _log.warning("request %s refused: %s", request_id, error)
            payload = write_answer(request_id, error=(error.code, str(error)))
        self._answer(received, data, payload)

    def _carry_out(self, request: ApplyRequest) -> JsonObject:
        """What came of a request; the same again for one that came before."""
        named = (read_resource if request.operation == "insert" else read_identity)(request.resource)
        masked, secrets = separate(request.resource)
        scope, key = f"apply:{request.request_id}", digest([request.operation, masked])
        if request.request_id is not None:
            before = next((known for known in self._desk.ledger.newest_known(scope, 64) if known.key == key), None)
            if before is not None:
                return loads_object(before.context)
        changes = Changes(self._desk.ledger)
        if request.operation == "insert":
            has_new_secrets = self._desk.vault.get(named.stream) != secrets
            self._desk.vault.put(named.stream, secrets)
            result = self._insert(changes, named, masked, request.request_id, has_new_secrets=has_new_secrets)
        else:
            result = self._delete(changes, named, request.request_id)
        if request.request_id is not None:
            now = self._desk.clock.now().timestamp()
            changes.known.append(Known(scope, key, dumps(result).decode(), now))
        self._desk.commit(changes)
        if request.operation == "delete":
            self._desk.vault.drop(named.stream)
        _log.info("%s %s", named.stream, result["result"])
        return result

    def _insert(
        self, changes: Changes, named: Named, resource: JsonObject, request_id: str | None, *, has_new_secrets: bool
    ) -> JsonObject:
        facts = decisions.Facts(self._desk.now(), uuid4().hex)
        before = changes.of(named.stream)
        if named.kind == JOB_KIND:
            job = changes.job(named.stream)
            place = self._place_of_dataset(changes, named.namespace, resource)
            changes.keep(decisions.apply_job(job, resource, place, facts, request_id))
        else:
            changes.keep(decisions.apply_dataset(changes.dataset(named.stream), resource, facts, request_id))
            dataset = changes.dataset(named.stream)
            for job in self._desk.ledger.jobs_of(dataset):
                place = decisions.Place(dataset.node, dataset.url)
                changes.keep(decisions.link_dataset(job, place, facts.now))
        after = changes.of(named.stream)
        return _result(named, after, _what_happened(before, after, has_new_secrets=has_new_secrets))

    def _delete(self, changes: Changes, named: Named, request_id: str | None) -> JsonObject:
        state = changes.of(named.stream)
        if not state.is_live:
            raise NotFoundError(f"{named.kind} {named.namespace}/{named.name} is not here")
        nodes = holders(state.deliveries)
        facts = decisions.Facts(self._desk.now(), uuid4().hex)
        changes.keep(decisions.delete_resource(state, facts, request_id))
        return {**_result(named, changes.of(named.stream), "deleted"), "nodes": nodes}

    def _place_of_dataset(self, changes: Changes, namespace: str, resource: JsonObject) -> decisions.Place | None:
        name = resource["spec"]["dataset"]["name"]  # type: ignore[index,call-overload]
        dataset = changes.dataset(stream_id(namespace, DATASET_KIND, str(name)))
        return decisions.Place(dataset.node, dataset.url) if dataset.is_live else None

    def _answer(self, received: Received, data: JsonObject, payload: bytes) -> None:
        """Answers are said once: an operator who hears none asks again under the same request id."""
        target = self._target(received, data)
        if target is None:
            return
        try:
            self._desk.publish(Publication(target, payload, correlation=received.correlation))
        except BrokerError as error:
            _log.warning("an answer on %s is lost: %s", target, error)

    def _target(self, received: Received, data: JsonObject) -> str | None:
        topics, reply_to = self._desk.topics, data.get("reply_to")
        if isinstance(reply_to, str) and is_word(reply_to):
            return topics.answer(SOURCE, reply_to)
        if received.response_topic is None:
            return None
        try:
            topic = topics.parse(received.response_topic)
        except RefusedError:
            return None
        return received.response_topic if (topic.kind, topic.node) == (TopicKind.ANSWER, SOURCE) else None


def _read(received: Received) -> JsonObject:
    if received.retain:
        raise RefusedError("a retained request would be carried out with every connection: clear the topic")
    if len(received.payload) > MAX_BYTES:
        raise RefusedError(f"{len(received.payload)} bytes are more than {MAX_BYTES}", code="too_large")
    return loads_object(received.payload)


def _what_happened(before: State, after: State, *, has_new_secrets: bool) -> str:
    """In kubectl's words; states are without secrets."""
    if not before.is_live or before.uid != after.uid:
        return "created"
    same = (before.kind, before.metadata, before.spec) == (after.kind, after.metadata, after.spec)
    return "unchanged" if same and not has_new_secrets else "configured"


def _result(named: Named, state: State, what: str) -> JsonObject:
    result: dict[str, Json] = {
        "kind": state.kind,
        "namespace": named.namespace,
        "name": named.name,
        "result": what,
        "generation": state.generation,
        "version": state.version,
        "nodes": holders(state.deliveries),
    }
    if isinstance(state, GmJob) and state.is_live and state.home is None:
        result["note"] = f"waits for dataset {named.namespace}/{state.dataset_name}, which is not here yet"
    return result
