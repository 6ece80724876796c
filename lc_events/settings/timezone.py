"""The system's time zone by its IANA name: a trigger's daily window is wall clock in a named zone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["is_zone", "system_zone"]

_ZONEINFO = "zoneinfo/"


def is_zone(name: str) -> bool:
    """Whether `name` is in the IANA data base, the system's or that of the tzdata package."""
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # unknown; a folder of zones, such as "Europe"; not a relative path
        return False
    return True


def system_zone(environ: Mapping[str, str] = os.environ, etc: Path = Path("/etc")) -> str:
    """The first of `TZ`, `/etc/timezone` and the link `/etc/localtime` that names a zone, else `UTC`.

    The file comes before the link: containers often mount the host's `/etc/timezone`, and `/etc/localtime` over the
    target of a link that goes on saying UTC.
    """
    return next((name for name in _candidates(environ, etc) if is_zone(name)), "UTC")


def _candidates(environ: Mapping[str, str], etc: Path) -> Iterator[str]:
    zone = environ.get("TZ", "").removeprefix(":")
    yield zone.rpartition(_ZONEINFO)[2]
    timezone = etc / "timezone"
    if timezone.is_file():
        yield timezone.read_text(encoding="utf-8", errors="replace").strip()
    yield os.path.realpath(etc / "localtime").rpartition(_ZONEINFO)[2]
