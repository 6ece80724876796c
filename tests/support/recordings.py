"""The golden recordings of the real Sedna LC (tests/golden), as steps, and carried on beyond their three rounds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"
EVAL_WINDOW = 5
SAMPLES = 10

Json = dict[str, Any]


def recording(name: str) -> list[Json]:
    """All lines of a recording."""
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Step:
    """One line of a happy recording: `down`, `up`, `worker`, `append` or `files`; conditions are only the new ones."""

    kind: str
    name: str
    content: Any


def steps(name: str) -> list[Step]:
    """The lines of a happy recording that have a twin here."""
    found: list[Step] = []
    conditions = 0
    for line in recording(name):
        match line:
            case {"dir": "gm->lc", "header": {"resourceKind": kind}, "content": content}:
                if kind == "lifelonglearningjob":
                    whole = content["status"]["conditions"]
                    content["status"]["conditions"] = whole[conditions:]
                    conditions = len(whole)
                found.append(Step("down", kind, content))
            case {"dir": "lc->gm", "header": {"resourceKind": kind}, "content": content}:
                found.append(Step("up", kind, json.loads(content)))
            case {"dir": "http", "request": {"path": path, "body": body}}:
                found.append(Step("worker", path.split("/")[3], body))
            case {"dir": "fs", "label": label, "files": files}:
                found.append(
                    Step("append" if label in ("input dataset", "dataset appended") else "files", label, files)
                )
    for i in range(1, len(found)):
        if (found[i - 1].kind, found[i].kind) == ("up", "worker"):  # a report overtook the answer to its request
            found[i - 1 : i + 1] = found[i], found[i - 1]
    return found


def rounds(name: str, count: int) -> list[list[Step]]:
    """The steps of each round, in the order of the recording; from the fourth on as the third says."""
    found: list[list[Step]] = []
    for step in steps(name):
        if step.kind == "append":
            found.append([])
        found[-1].append(step)
    return [*found, *(carried_on(found[2], 3, number) for number in range(len(found) + 1, count + 1))][:count]


def carried_on(pattern: list[Step], from_round: int, to_round: int) -> list[Step]:
    """The steps of one round as those of another; files are only those that this round adds."""
    carried = []
    for step in pattern:
        text = re.sub(rf'/{from_round}(?=[/"\\])', f"/{to_round}", json.dumps(step.content))
        text = text.replace(f'"numberOfSamples": {from_round}0', f'"numberOfSamples": {to_round}0')
        content = json.loads(text)
        if step.kind == "append":
            content = {path: shifted(text, to_round - from_round) for path, text in content.items()}
        carried.append(Step(step.kind, step.name.replace(f"round {from_round}", f"round {to_round}"), content))
    return carried


def shifted(samples: str, by: int) -> str:
    """Sample lines of one round as those of another: `imgs/020.jpg 0` or `20,0`, ten to a round."""
    return "".join(
        f"imgs/{int(line[5:8]) + SAMPLES * by:03}{line[8:]}"
        if line.startswith("imgs/")
        else f"{int(line.split(',')[0]) + SAMPLES * by},{line.split(',')[1]}"
        for line in samples.splitlines(keepends=True)
    )


class Expected:
    """The files that we write where Sedna's LC wrote those of a recording, up to and with a round.

    They differ as DESIGN section 5 says: an eval sample is in each eval file once, for 5 rounds; the deployed model is
    the evaluated one, without the tail of the one before it.
    """

    def __init__(self, name: str) -> None:
        self.format = name.rpartition("_")[2]
        self._batches: list[list[str]] = []
        self._header = ""
        self._files: dict[str, str | None] = {"/output/job1/data/eval/": None, "/output/job1/eval/": None}
        self._files["/output/job1/train/"] = None

    def appended(self, text: str) -> None:
        """Samples of one more round are in the dataset."""
        lines = text.splitlines(keepends=True)
        if self.format == "csv" and not self._batches:
            self._header, *lines = lines
        self._batches.append(lines)
        round_ = len(self._batches)
        self._files[f"/output/job1/data/train/{round_}/data.{self.format}"] = self._header + "".join(lines[:8])

    def eval_ready(self) -> None:
        """The eval file of this round is there."""
        self._files.pop("/output/job1/data/eval/", None)
        evaluated = [line for lines in self._batches[-EVAL_WINDOW:] for line in lines[8:]]
        path = f"/output/job1/data/eval/{len(self._batches)}/data.{self.format}"
        self._files[path] = self._header + "".join(evaluated)

    def model(self, text: str) -> None:
        """A worker wrote the evaluated model of this round."""
        self._files.pop("/output/job1/eval/", None)
        self._files[f"/output/job1/eval/{len(self._batches)}/index.pkl"] = text

    def deployed(self) -> None:
        """The evaluated model is deployed."""
        path = f"/output/job1/eval/{len(self._batches)}/index.pkl"
        self._files["/output/job1/deploy/index.pkl"] = self._files[path]

    @property
    def files(self) -> dict[str, str | None]:
        """All files under `/output/job1`; an empty folder is None."""
        return dict(self._files)

    def as_recorded(self, recorded: dict[str, str | None]) -> dict[str, str | None]:
        """A recorded list of files without Sedna's two defects."""
        mended = dict(recorded)
        for path, text in recorded.items():
            if path.startswith("/output/job1/data/eval/") and text is not None:
                mended[path] = "".join(dict.fromkeys(text.splitlines(keepends=True)))
        deployed = mended.get("/output/job1/deploy/index.pkl")
        if deployed is not None:
            newest = max(int(path.split("/")[4]) for path in recorded if path.startswith("/output/job1/eval/"))
            mended["/output/job1/deploy/index.pkl"] = recorded[f"/output/job1/eval/{newest}/index.pkl"]
        return mended
