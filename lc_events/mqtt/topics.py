"""Every topic of CONTRACT section 2, built and parsed by one table; names are checked by bytes, not by hope."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from lc_events.errors import RefusedError, UsageError
from lc_events.messages.names import DATASET_KIND, JOB_KIND, is_namespace, is_resource_name, is_word

__all__ = ["GM", "ParsedTopic", "TopicKind", "Topics"]

GM = "gm"
"""The name under which our global manager answers; therefore never the name of a node."""

_REMEMBERED = 4096
_ROOT = re.compile(r"[A-Za-z0-9_.-]{1,64}(?:/[A-Za-z0-9_.-]{1,64}){0,7}")


class TopicKind(StrEnum):
    """What a topic carries; the value is its pattern below the root."""

    DOWN = "down/{node}/{resource_kind}/{namespace}/{name}"
    DOWN_ACK = "down/{node}/ack"
    UP = "up/{node}/{resource_kind}/{namespace}/{name}"
    WORKER_INFO = "worker/{node}/{worker}/info"
    WORKER_DONE = "worker/{node}/{worker}/done"
    TICK = "tick/{node}"
    STATUS = "state/{node}/status"
    LINK = "state/{node}/link"
    OUTBOX = "state/{node}/outbox"
    STATE_JOB = "state/{node}/jobs/{namespace}/{name}"
    STATE_MODEL = "state/{node}/models/{namespace}/{name}"
    STATE_DATASET = "state/{node}/datasets/{namespace}/{name}"
    STATE_HEAD = "state/{node}/heads/{namespace}/{name}"
    EVENT_JOB = "events/{node}/jobs/{namespace}/{name}"
    EVENT_DATASET = "events/{node}/datasets/{namespace}/{name}"
    ERRORS = "errors/{node}"
    ASK = "ask/{node}/{verb}"
    ANSWER = "answer/{node}/{asker}"
    APPLY = "apply/{request}"
    WORK = "work/{node}/{worker}"


@dataclass(frozen=True, slots=True)
class ParsedTopic:
    """A topic taken apart: its kind, and the names that its pattern holds (empty where it holds none)."""

    kind: TopicKind
    node: str = ""
    resource_kind: str = ""
    namespace: str = ""
    name: str = ""
    worker: str = ""
    verb: str = ""
    asker: str = ""
    request: str = ""


_LEVELS = {kind: kind.value.split("/") for kind in TopicKind}
_BY_SHAPE: dict[tuple[str, int], list[TopicKind]] = defaultdict(list)
for _kind, _levels in _LEVELS.items():
    _BY_SHAPE[_levels[0], len(_levels)].append(_kind)


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics below `root` (one to eight levels of `[A-Za-z0-9_.-]{1,64}`).

    Builders raise RefusedError (code `topic`, of an unknown resource kind `kind`) for a name that may not stand in a
    topic; a wrong root is a UsageError.
    """

    root: str = "sedna"

    def __post_init__(self) -> None:
        """A root with wildcards, `$` or empty levels would open topics of others to us."""
        if _ROOT.fullmatch(self.root) is None:
            raise UsageError(f"topic root {_shown(self.root)}: levels of A-Z a-z 0-9 _ . - joined by /, like 'sedna'")

    def down(self, node: str, resource_kind: str, namespace: str, name: str) -> str:
        """GM's message about a resource to the LC of `node`."""
        return self._build(TopicKind.DOWN, node=node, resource_kind=resource_kind, namespace=namespace, name=name)

    def down_ack(self, node: str) -> str:
        """Where GM confirms upstream ids."""
        return self._build(TopicKind.DOWN_ACK, node=node)

    def up(self, node: str, resource_kind: str, namespace: str, name: str) -> str:
        """The LC's report on a resource to GM."""
        return self._build(TopicKind.UP, node=node, resource_kind=resource_kind, namespace=namespace, name=name)

    def worker_info(self, node: str, worker: str) -> str:
        """A worker's report to the LC of its node."""
        return self._build(TopicKind.WORKER_INFO, node=node, worker=worker)

    def worker_done(self, node: str, worker: str) -> str:
        """Where the LC says that a worker's report is on its disk."""
        return self._build(TopicKind.WORKER_DONE, node=node, worker=worker)

    def tick(self, node: str) -> str:
        """One tick of every waiting job of `node`."""
        return self._build(TopicKind.TICK, node=node)

    def status(self, node: str) -> str:
        """Birth and will of the LC (retained)."""
        return self._build(TopicKind.STATUS, node=node)

    def link(self, node: str) -> str:
        """State of the bridge to the cloud (retained)."""
        return self._build(TopicKind.LINK, node=node)

    def outbox(self, node: str) -> str:
        """How far this broker has the LC's log (retained)."""
        return self._build(TopicKind.OUTBOX, node=node)

    def state_job(self, node: str, namespace: str, name: str) -> str:
        """Latest job state (retained)."""
        return self._build(TopicKind.STATE_JOB, node=node, namespace=namespace, name=name)

    def state_model(self, node: str, namespace: str, name: str) -> str:
        """The deployed model (retained)."""
        return self._build(TopicKind.STATE_MODEL, node=node, namespace=namespace, name=name)

    def state_dataset(self, node: str, namespace: str, name: str) -> str:
        """Latest dataset state (retained)."""
        return self._build(TopicKind.STATE_DATASET, node=node, namespace=namespace, name=name)

    def state_head(self, node: str, namespace: str, name: str) -> str:
        """Head of the job's stream (retained)."""
        return self._build(TopicKind.STATE_HEAD, node=node, namespace=namespace, name=name)

    def event_job(self, node: str, namespace: str, name: str) -> str:
        """Events of a job, as CloudEvents."""
        return self._build(TopicKind.EVENT_JOB, node=node, namespace=namespace, name=name)

    def event_dataset(self, node: str, namespace: str, name: str) -> str:
        """Events of a dataset, as CloudEvents."""
        return self._build(TopicKind.EVENT_DATASET, node=node, namespace=namespace, name=name)

    def errors(self, node: str) -> str:
        """What the LC refused."""
        return self._build(TopicKind.ERRORS, node=node)

    def ask(self, node: str, verb: str) -> str:
        """A request to the LC, CONTRACT section 7."""
        return self._build(TopicKind.ASK, node=node, verb=verb)

    def answer(self, node: str, asker: str) -> str:
        """The response to `asker`; `node` is `gm` when our GM answers."""
        return self._build(TopicKind.ANSWER, node=node, asker=asker)

    def apply(self, request: str) -> str:
        """A manifest for our GM."""
        return self._build(TopicKind.APPLY, request=request)

    def work(self, node: str, worker: str) -> str:
        """A work order for the agent of `node`."""
        return self._build(TopicKind.WORK, node=node, worker=worker)

    def lc_subscriptions(self, node: str) -> tuple[str, ...]:
        """What the LC hears; `#` where an unknown kind or verb must be refused aloud instead of ignored."""
        _check(TopicKind.TICK, "node", node)
        return (
            f"{self.root}/down/{node}/#",
            f"{self.root}/worker/{node}/+/info",
            f"{self.root}/tick/{node}",
            f"{self.root}/ask/{node}/#",
        )

    def gm_subscriptions(self) -> tuple[str, ...]:
        """What our GM hears of all nodes: reports, the states that confirm its messages, refusals, and `apply`."""
        return (
            f"{self.root}/up/#",
            f"{self.root}/apply/+",
            f"{self.root}/errors/+",
            f"{self.root}/state/+/status",
            f"{self.root}/state/+/jobs/+/+",
            f"{self.root}/state/+/datasets/+/+",
        )

    def agent_subscriptions(self, node: str) -> tuple[str, ...]:
        """What a node's worker agent hears: work orders, and `done` for each of its workers."""
        _check(TopicKind.TICK, "node", node)
        return (f"{self.root}/work/{node}/+", f"{self.root}/worker/{node}/+/done")

    def state_filter(self, node: str | None = None) -> str:
        """All latest values of a node, or of every node."""
        return f"{self.root}/state/{self._level('node', node)}/#"

    def heads_filter(self, node: str | None = None) -> str:
        """The retained heads of a node's jobs, or of every node's."""
        return f"{self.root}/state/{self._level('node', node)}/heads/+/+"

    def events_filter(self, node: str | None = None, namespace: str | None = None, name: str | None = None) -> str:
        """Events of jobs and datasets, narrowed to a node, a namespace, a name."""
        levels = (self._level("node", node), "+", self._level("namespace", namespace), self._level("name", name))
        return f"{self.root}/events/{'/'.join(levels)}"

    def parse(self, topic: str) -> ParsedTopic:
        """Take a topic apart; RefusedError (code `topic` or `kind`) for whatever CONTRACT section 2 does not name."""
        return _parsed(self, topic)

    def _parse(self, topic: str) -> ParsedTopic:
        if not topic.startswith(f"{self.root}/"):
            raise RefusedError(f"topic {_shown(topic)} is not below {self.root}/", code="topic")
        levels = topic[len(self.root) + 1 :].split("/")
        for kind in _BY_SHAPE.get((levels[0], len(levels)), ()):
            pattern = _LEVELS[kind]
            if all(want[0] == "{" or want == have for want, have in zip(pattern, levels, strict=True)):
                fields = {want[1:-1]: have for want, have in zip(pattern, levels, strict=True) if want[0] == "{"}
                for field, value in fields.items():
                    _check(kind, field, value)
                return ParsedTopic(kind, **fields)
        raise RefusedError(f"topic {_shown(topic)} is none of ours: see `lc-events topics`", code="topic")

    def _build(self, kind: TopicKind, **fields: str) -> str:
        return _built(self.root, kind, tuple(fields.items()))

    @staticmethod
    def _level(field: str, value: str | None) -> str:
        if value is None:
            return "+"
        _check(TopicKind.STATE_JOB, field, value)
        return value


@lru_cache(maxsize=_REMEMBERED)
def _parsed(topics: Topics, topic: str) -> ParsedTopic:
    return topics._parse(topic)  # noqa: SLF001 - the same module; the same topics come again and again


@lru_cache(maxsize=_REMEMBERED)
def _built(root: str, kind: TopicKind, fields: tuple[tuple[str, str], ...]) -> str:
    for field, value in fields:
        _check(kind, field, value)
    return f"{root}/{kind.value.format_map(dict(fields))}"


def _check(kind: TopicKind, field: str, value: str) -> None:
    if field == "node":
        accepted = is_word(value) and (value != GM or kind is TopicKind.ANSWER)
    elif field == "resource_kind":
        accepted = value in (JOB_KIND, DATASET_KIND)
    elif field == "namespace":
        accepted = is_namespace(value)
    elif field == "name":
        accepted = is_resource_name(value)
    else:
        accepted = is_word(value)
    if not accepted:
        if field == "resource_kind":
            raise RefusedError(f"kind {_shown(value)} is not one of {JOB_KIND}, {DATASET_KIND}", code="kind")
        raise RefusedError(f"{field.replace('_', ' ')} {_shown(value)} may not stand in a topic", code="topic")


def _shown(text: str) -> str:
    """Escaped and cut, for a topic comes from anybody and goes into logs."""
    return ascii(text if len(text) <= 200 else f"{text[:200]}…")
