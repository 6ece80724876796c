"""What the agent must know; `lc_events.settings` reads it from flags, environment and file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lc_events.storage.s3_clients import READ_SECONDS

__all__ = ["AgentSettings"]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of the agent of one node.

    `allow` names the executables that an order may start, by bare name or absolute path. `root` is the prefix of every
    local URL of a resource (LC_ROOT of the same node). `programs` is the folder that orders call $(WORKER_PROGRAMS).
    `concurrency` bounds train and eval programs that run at once; inference programs are not counted. `environ` is
    where inherited variables and secrets come from. `grace_seconds` pass between SIGTERM and SIGKILL.
    """

    node: str
    state_dir: Path
    root: Path = Path("/")
    programs: Path = Path()
    allow: tuple[str, ...] = ("python", "python3")
    concurrency: int = 2
    grace_seconds: float = 5.0
    s3_ca_file: Path | None = None
    s3_timeout_seconds: float = READ_SECONDS
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    def __post_init__(self) -> None:
        """Programs run in folders of their own, where a relative path would mean something else."""
        for name in ("state_dir", "root", "programs"):
            object.__setattr__(self, name, Path(os.path.abspath(getattr(self, name))))  # noqa: PTH100 - links may change
