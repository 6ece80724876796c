"""A global manager from its settings: the only place where the two meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_events.gm.global_manager import GlobalManager
from lc_events.mqtt.topics import Topics

if TYPE_CHECKING:
    from lc_events.settings.programs import GmSettings

__all__ = ["global_manager"]


def global_manager(settings: GmSettings) -> GlobalManager:
    """A global manager, not yet running; UsageError if the broker's settings cannot be used."""
    return GlobalManager(settings.state_dir, settings.mqtt, topics=Topics(settings.topic_root))
