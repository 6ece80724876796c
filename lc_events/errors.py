"""Every error this program raises on purpose, each with one code for logs, `sedna/errors/NODE` and the exit."""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "BrokerError",
    "ConflictError",
    "IntegrityError",
    "LcError",
    "NotFoundError",
    "RefusedError",
    "StorageError",
    "StoreError",
    "UsageError",
]


class LcError(Exception):
    """Base of all errors; `code` is stable, `exit_code` follows CONTRACT section 8."""

    exit_code: ClassVar[int] = 1
    default_code: ClassVar[str] = "failed"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.default_code


class UsageError(LcError):
    """A setting, flag or argument is wrong."""

    exit_code = 2
    default_code = "usage"


class NotFoundError(LcError):
    """A job, version, file or request names something that is not there."""

    exit_code = 3
    default_code = "not_found"


class ConflictError(LcError):
    """The state folder is locked by another process, or a stream exists already."""

    exit_code = 4
    default_code = "conflict"


class IntegrityError(LcError):
    """The chain is broken, a version is missing, or a decision does not follow from its facts."""

    exit_code = 5
    default_code = "integrity"


class BrokerError(LcError):
    """The broker is unreachable, refuses us, or the node name is in use on another machine."""

    exit_code = 6
    default_code = "broker"


class StoreError(LcError):
    """The event store cannot be opened, read or written."""

    exit_code = 6
    default_code = "store"


class StorageError(LcError):
    """A file or object of a dataset, sample file or model cannot be read or written; `missing` if it does not exist."""

    default_code = "storage"

    def __init__(self, message: str, *, code: str | None = None, missing: bool = False) -> None:
        super().__init__(message, code=code)
        self.missing = missing


class RefusedError(LcError):
    """A message cannot be accepted; it goes to quarantine and to `sedna/errors/NODE` under this code."""

    default_code = "malformed"
