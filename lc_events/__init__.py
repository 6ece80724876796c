"""lc-events: Sedna's local controller for lifelong-learning jobs, event-sourced, over MQTT."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("lc-events")
except PackageNotFoundError:  # pragma: no cover - a checkout that was never installed
    __version__ = "0+unknown"
