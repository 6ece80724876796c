"""A global manager played by hand: it keeps conditions, sends what Sedna's sends, and waits for what comes up."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from support.local_controller import ControllerProcess
from support.sedna import DATASET, JOB, condition, dataset_resource, job_resource, output
from support.tap import Tapped

Json = dict[str, Any]


class PlayedGm:
    """Talks to one controller; `with_ids` and `as_base64` choose between the forms that CONTRACT section 3 allows.

    With ids it also acknowledges all that it waited for. `up` is what came up so far, each id once.
    """

    def __init__(self, lc: ControllerProcess, *, with_ids: bool = True, as_base64: bool = False) -> None:
        self._lc = lc
        self._with_ids = with_ids
        self._as_base64 = as_base64
        self._sent = 0
        self._waited = 0
        self._resources: dict[str, Json] = {}
        self.last_id: str | None = None

    def send(
        self, kind: str, name: str, content: object, *, operation: str = "insert", namespace: str = "default"
    ) -> None:
        """Send one message down."""
        header = {"namespace": namespace, "resourceKind": kind, "resourceName": name, "operation": operation}
        if self._as_base64:
            content = base64.b64encode(json.dumps(content).encode()).decode()
        message: Json = {"header": header, "content": content}
        if self._with_ids:
            self._sent += 1
            self.last_id = message["id"] = f"m-{self._sent}"
        self._lc.tap.publish(self._lc.topic(f"down/{{node}}/{kind}/{namespace}/{name}"), message)

    def dataset(self, name: str = "ds", *, url: str = "/data/ds.txt", format_: str = "txt") -> None:
        """Insert a dataset."""
        self.send(DATASET, name, dataset_resource(name=name, url=url, format_=format_))

    def job(self, name: str = "job1", *conditions: Json, **resource: Any) -> None:
        """Insert a job, standing at Train/Waiting unless `conditions` say otherwise."""
        stand = conditions or (condition("Train", "Waiting", "2024-01-01T00:00:00Z"),)
        resource.setdefault("output_dir", f"/output/{name}")
        self._resources[name] = job_resource(*stand, name=name, **resource)
        self.send(JOB, name, self._resources[name])

    def move(self, *conditions: Json, name: str = "job1") -> None:
        """Append conditions to a job and send it."""
        self._resources[name]["status"]["conditions"] += conditions
        self.send(JOB, name, self._resources[name])

    def again(self, name: str = "job1") -> None:
        """Send a job once more as it is."""
        self.send(JOB, name, self._resources[name])

    def delete(self, name: str = "job1", kind: str = JOB) -> None:
        """Delete a resource."""
        self.send(kind, name, self._resources.pop(name, None), operation="delete")

    def result(self, worker: str = "w1", **fields: object) -> None:
        """Speak as a worker: `train completed` of job1 unless `fields` say otherwise."""
        message = {"name": worker, "namespace": "default", "ownerName": "job1", "ownerKind": JOB}
        self.report(worker, {**message, "kind": "train", "status": "completed", "results": [], **fields})

    def report(self, worker: str, message: Mapping[str, object] | str | bytes) -> None:
        """Send a worker's message as it is."""
        payload = message if isinstance(message, str | bytes) else dict(message)
        self._lc.tap.publish(self._lc.topic(f"worker/{{node}}/{worker}/info"), payload)

    def ack(self, *ids: str) -> None:
        """Say that these reports are on disk."""
        self._lc.tap.publish(self._lc.topic("down/{node}/ack"), {"ids": list(ids)})

    @property
    def up(self) -> list[Tapped]:
        """What came up, in order, each id once."""
        return _each_once(m for m in self._lc.tap.messages if self._is_up(m))

    def all_up(self) -> list[Tapped]:
        """What came up, repeats included."""
        return [m for m in self._lc.tap.messages if self._is_up(m)]

    def next_up(self, timeout: float = 10.0) -> Json:
        """Wait for the next report that nobody waited for yet."""
        seen: set[str] = set()

        def is_new(message: Tapped) -> bool:
            if not self._is_up(message) or message.json["id"] in seen:
                return False
            seen.add(message.json["id"])
            return True

        try:
            heard = self._lc.tap.wait_for_count(self._waited + 1, is_new, timeout)[self._waited]
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._lc.log[-4000:]}") from None
        self._waited += 1
        message: Json = heard.json
        if self._with_ids:
            self.ack(message["id"])
        return message

    def expect(self, *contents: Json) -> list[Json]:
        """Wait for the next reports, which must have these contents."""
        heard = [self.next_up() for _ in contents]
        assert [message["content"] for message in heard] == list(contents)
        return heard

    def expect_all(self, *contents: Json) -> list[Json]:
        """The same for reports of several resources, whose order among each other is free."""
        heard = [self.next_up() for _ in contents]
        assert sorted((m["content"] for m in heard), key=str) == sorted(contents, key=str)
        return heard

    def _is_up(self, message: Tapped) -> bool:
        return message.topic.startswith(self._lc.topic("up/{node}/"))


def _each_once(messages: Iterable[Tapped]) -> list[Tapped]:
    found: dict[str, Tapped] = {}
    for message in messages:
        found.setdefault(message.json["id"], message)
    return list(found.values())


def train_ready(round_: int, job: str = "job1", format_: str = "txt") -> Json:
    """The content of a Train/Ready report."""
    given = {
        "dataURL": f"/output/{job}/data/train/{round_}/data.{format_}",
        "outputDir": f"/output/{job}/train/{round_}",
    }
    return {"phase": "Train", "status": "Ready", "input": given, "output": None}


def at(second: int) -> str:
    """A transition time."""
    return f"2024-01-01T00:{second // 60:02}:{second % 60:02}Z"


def trained(round_: int, job: str = "job1") -> tuple[Json, ...]:
    """The conditions from a Train/Ready report to Eval/Waiting."""
    url = f"/output/{job}/train/{round_}/index.pkl"
    return (
        condition("Train", "Ready", at(10 * round_), {"input": train_ready(round_, job)["input"]}),
        condition("Train", "Completed", at(10 * round_ + 1), output(url)),
        condition("Eval", "Waiting", at(10 * round_ + 2)),
    )


def evaluated(round_: int, job: str = "job1") -> tuple[Json, ...]:
    """The conditions from an Eval/Ready report to Deploy/Waiting."""
    url = f"/output/{job}/eval/{round_}/index.pkl"
    return (
        condition("Eval", "Ready", at(10 * round_ + 3)),
        condition("Eval", "Completed", at(10 * round_ + 4), output(url)),
        condition("Deploy", "Waiting", at(10 * round_ + 5)),
    )


def deployed(round_: int) -> tuple[Json, ...]:
    """The conditions from a Deploy/Ready report to the next Train/Waiting."""
    return (
        condition("Deploy", "Ready", at(10 * round_ + 6)),
        condition("Deploy", "Completed", at(10 * round_ + 7)),
        condition("Train", "Waiting", at(10 * round_ + 8)),
    )
