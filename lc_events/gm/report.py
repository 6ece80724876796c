"""An upstream status of a job, read: from a local controller itself, or a worker's result that it passed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from lc_events.domain.conditions import stage_of
from lc_events.gm.conditions import bounded_models
from lc_events.messages.json import Json, JsonObject

__all__ = ["Report"]

_FINAL = ("completed", "failed")


@dataclass(frozen=True, slots=True)
class Report:
    """What the LC of `node` said; `stage` is empty for a phase that is none, `status` lower case.

    Only a worker's report has an `output`; only Ready has an `input`.
    """

    node: str
    stage: str
    status: str
    input: JsonObject | None
    output: JsonObject | None

    @classmethod
    def read(cls, node: str, content: JsonObject) -> Self:
        """Read the content of an upstream message of a job; words that are none are empty."""
        phase, status = content.get("phase"), content.get("status")
        return cls(
            node=node,
            stage=stage_of(phase) if isinstance(phase, str) else "",
            status=status.lower() if isinstance(status, str) else "",
            input=_object(content.get("input")),
            output=_object(content.get("output")),
        )

    @property
    def is_from_worker(self) -> bool:
        """Whether it is a worker's; the LC's own reports say `"output": null`."""
        return self.output is not None

    @property
    def is_final(self) -> bool:
        """Whether the worker's program has ended."""
        return self.is_from_worker and self.status in _FINAL

    @property
    def order(self) -> str | None:
        """The work order that it answers; our agents name it in `ownerInfo`, other workers need not."""
        order = self._owner_info.get("order")
        return order if isinstance(order, str) else None

    @property
    def models(self) -> list[JsonObject] | None:
        """The models that the worker made; None if they are too many to keep."""
        return bounded_models((self.output or {}).get("models"))

    @property
    def error(self) -> str:
        """Why a worker failed, in its own words."""
        error = self._owner_info.get("error")
        return error[:1000] if isinstance(error, str) and error else "the worker failed"

    @property
    def _owner_info(self) -> JsonObject:
        return _object((self.output or {}).get("ownerInfo")) or {}


def _object(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None
