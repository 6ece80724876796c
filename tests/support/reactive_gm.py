"""A global manager and its workers that answer every report by themselves, round after round."""

from __future__ import annotations

import threading
from typing import Any, Self

from support.local_controller import ControllerProcess
from support.sedna import DATASET, JOB, condition, dataset_resource, job_resource, output

Json = dict[str, Any]


class ReactiveGm:
    """Answers each report once, by its id; `sent` are the ids of all that it and its workers sent.

    It relies on the broker to keep what it sends. Transition times grow by one second a condition.
    """

    def __init__(self, lc: ControllerProcess) -> None:
        self._lc = lc
        self.sent: list[str] = []
        self.rounds: dict[str, int] = {}
        self._jobs: dict[str, Json] = {}
        self._answered: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(20)

    def dataset(self, name: str, url: str) -> None:
        self._down(DATASET, name, dataset_resource(name=name, url=url))

    def job(self, name: str, **resource: Any) -> None:
        waiting = condition("Train", "Waiting", _at(0))
        self._jobs[name] = job_resource(waiting, name=name, output_dir=f"/output/{name}", **resource)
        self.rounds[name] = 0
        self._down(JOB, name, self._jobs[name])

    def _run(self) -> None:
        seen = 0
        try:
            while not self._stopping.wait(0.02):
                messages = self._lc.tap.messages
                for message in messages[seen:]:
                    if message.topic.startswith(self._lc.topic("up/{node}/")):
                        self._answer(message.json)
                seen = len(messages)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.error = error

    def _answer(self, report: Json) -> None:
        if report["id"] in self._answered:
            return
        self._answered.add(report["id"])
        self._publish("down/{node}/ack", {"ids": [report["id"]]})
        name, content = report["header"]["resourceName"], report["content"]
        if name in self._jobs and "phase" in content:
            self._move(name, content)

    def _move(self, name: str, content: Json) -> None:
        number = self.rounds[name]
        match content["phase"], content["status"]:
            case "Train", "Ready":
                number = self.rounds[name] = int(content["input"]["outputDir"].rpartition("/")[2])
                url = self._model(name, "train", number)
                self._result(name, number, "train", url)
                moves = [("Train", "Ready", {"input": content["input"]}), ("Train", "Completed", output(url))]
                self._append(name, *moves, ("Eval", "Waiting", None))
            case "Eval", "Ready":
                url = self._model(name, "eval", number)
                self._result(name, number, "eval", url)
                moves = [("Eval", "Ready", {"input": content["input"]}), ("Eval", "Completed", output(url))]
                self._append(name, *moves, ("Deploy", "Waiting", None))
            case "Deploy", _:
                self._append(name, ("Deploy", "Ready", None), ("Deploy", "Completed", None), ("Train", "Waiting", None))

    def _model(self, name: str, stage: str, number: int) -> str:
        url = f"/output/{name}/{stage}/{number}/index.pkl"
        self._lc.write(url, f"model {name} {stage} {number}")
        return url

    def _result(self, name: str, number: int, kind: str, url: str) -> None:
        worker = f"{name}-{kind}"
        for status in ("running", "completed"):
            message_id = f"r-{name}-{number}-{kind}-{status}"
            results = [{"format": "pkl", "url": url, "metrics": {"acc": [0.5]}}]
            message = {"id": message_id, "name": worker, "namespace": "default", "ownerName": name, "ownerKind": JOB}
            self.sent.append(message_id)
            self._publish(
                f"worker/{{node}}/{worker}/info", {**message, "kind": kind, "status": status, "results": results}
            )

    def _append(self, name: str, *moves: tuple[str, str, Json | None]) -> None:
        conditions = self._jobs[name]["status"]["conditions"]
        for stage, type_, data in moves:
            conditions.append(condition(stage, type_, _at(len(conditions)), data))
        self._down(JOB, name, self._jobs[name])

    def _down(self, kind: str, name: str, content: Json) -> None:
        header = {"namespace": "default", "resourceKind": kind, "resourceName": name, "operation": "insert"}
        message_id = f"m-{len(self.sent)}"
        self.sent.append(message_id)
        self._publish(f"down/{{node}}/{kind}/default/{name}", {"id": message_id, "header": header, "content": content})

    def _publish(self, pattern: str, payload: Json) -> None:
        self._lc.tap.publish(self._lc.topic(pattern), payload)


def _at(second: int) -> str:
    return f"2024-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
