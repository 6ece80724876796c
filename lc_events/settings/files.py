"""The files that settings name: the TOML file, the event store to read, what an internal broker wrote down.

Without pydantic, for commands that only read have to answer in a blink.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lc_events.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "GM_STATE_DIR",
    "LC_STATE_DIR",
    "STORE_NAME",
    "WORKER_STATE_DIR",
    "read_config",
    "reading_store",
    "store_file",
]

LC_STATE_DIR = Path("lc-state")
GM_STATE_DIR = Path("gm-state")
WORKER_STATE_DIR = Path("worker-state")
STORE_NAME = "events.db"

_SQLITE = "sqlite:///"


def reading_store(
    store: str | None = None, config: Path | None = None, environ: Mapping[str, str] = os.environ
) -> Path:
    """The data base to read: `store`, else the LC's settings, else `GM_STATE_DIR`, else what lies in this folder.

    Only the settings that say where the store is are looked at: a wrong tick period must not keep an auditor out.
    Whether the file exists is for the reader to say. Raises UsageError for a store that is not SQLite.
    """
    table = read_config(config) if config else {}
    if named := store or environ.get("LC_STORE") or table.get("store"):
        try:
            return store_file(str(named))
        except ValueError as error:
            raise UsageError(f"the store is {named!r}, but {error}") from None
    if folder := environ.get("LC_STATE_DIR") or table.get("state_dir") or environ.get("GM_STATE_DIR"):
        return Path(str(folder)).expanduser() / STORE_NAME
    only_gm = GM_STATE_DIR.is_dir() and not LC_STATE_DIR.is_dir()
    return (GM_STATE_DIR if only_gm else LC_STATE_DIR) / STORE_NAME


def store_file(text: str) -> Path:
    """The file of `sqlite:///relative`, `sqlite:////absolute` or a plain path, a folder meaning its `events.db`.

    Raises ValueError for another scheme.
    """
    name = text.removeprefix(_SQLITE)
    if not name or "://" in name or name == ":memory:":
        raise ValueError("must be sqlite:///FILE (sqlite:////FILE from the root) or a path")
    path = Path(name).expanduser()
    return path / STORE_NAME if path.is_dir() else path


def internal_broker_url(state_dir: Path) -> str:
    """The URL, with password, that the internal broker of an LC listens on; UsageError if none was started there."""
    path = state_dir / "broker.env"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; the LC writes it when it starts its internal broker") from None
    return next((line.partition("=")[2] for line in lines if line.startswith("LC_MQTT_URL=")), "")


def read_config(path: Path) -> dict[str, Any]:
    """The settings in a TOML file; UsageError if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # also of bytes that are not UTF-8
        raise UsageError(f"{path}: not TOML: {error}") from None
