"""Logging: one line a record on stderr, as text or JSON, with one place where secrets are masked."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lc_events.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["JsonFormatter", "Mask", "TextFormatter", "configure_logging", "set_mask"]

_OWN = "lc_events"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; anything else came by `extra=` and is shown."""

Mask = Callable[[str], str]
"""Replaces each secret that it knows in a text."""


class _OneLineFormatter(logging.Formatter):
    """What both forms share: every text of a record passes through `mask`."""

    mask: Mask = staticmethod(lambda text: text)


class TextFormatter(_OneLineFormatter):
    """`2026-05-09T08:19:33.123Z info lc_events.gm: what happened key=value`, and `| traceback` at the end."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line without control characters."""
        extra = "".join(f" {key}={value}" for key, value in _extra(record).items())
        trace = f" | {trace}" if (trace := _traceback(record)) else ""
        line = f"{_time(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}{extra}{trace}"
        return printable(self.mask(line))


class JsonFormatter(_OneLineFormatter):
    """One JSON object: `time`, `level`, `logger`, `message`, the extra fields, and `exception` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of ASCII; the standard library's writer takes any text, half surrogates included."""
        fields: dict[str, object] = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        texts = {"message": record.getMessage(), **_extra(record)}
        if trace := _traceback(record):
            texts["exception"] = trace
        for key, value in texts.items():
            fields[key] = value if isinstance(value, bool | int | None) else self.mask(str(value))
        return json.dumps(fields)


def configure_logging(level: str = "info", log_format: str = "text") -> None:
    """Log our own records from `level` (debug, info, warning, error) on, those of libraries from warning on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    own_level = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(handlers=[handler], level=max(logging.WARNING, own_level), force=True)
    logging.getLogger(_OWN).setLevel(own_level)
    logging.captureWarnings(capture=True)


def set_mask(mask: Mask) -> None:
    """Have `mask` applied to all that is logged from now on: messages, extra fields, tracebacks."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, _OneLineFormatter):
            handler.formatter.mask = mask


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extra(record: logging.LogRecord) -> Mapping[str, object]:
    """What came by `extra=`."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _traceback(record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[0] is not None:
        return logging.Formatter().formatException(record.exc_info)
    return ""
