"""An edge broker bridged to a cloud broker over a link that can be cut; both can be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from support.link import Link
from support.mosquitto import Mosquitto
from support.ports import free_port

_IN = ("down/{node}/#", "ask/{node}/#", "work/{node}/+")
_OUT = ("up/{node}/#", "events/{node}/#", "errors/{node}", "answer/{node}/#", "state/{node}/#")


class Bridged:
    """Two connections, one for each direction: `in` with 3.1.1 keeps what comes while the edge is down.

    `queued` is how many messages a broker keeps for one that is away; beyond it Mosquitto drops them silently. With
    `is_durable` what is queued survives a kill; else what was saved last, `autosave_seconds` ago at most, does.
    """

    def __init__(
        self,
        folder: Path,
        *,
        node: str = "edge1",
        queued: int = 100_000,
        is_durable: bool = False,
        autosave_seconds: int = 1,
    ) -> None:
        cloud_port = free_port()
        self.link = Link(cloud_port)
        common = {
            "max_queued_messages": queued,
            "persistence": True,
            "save_on_change": is_durable,
            "autosave_seconds": autosave_seconds,
        }
        self.cloud = Mosquitto(folder / "cloud", port=cloud_port, **common)
        self.edge = Mosquitto(folder / "edge", extra=self._bridge(node), **common)

    def __enter__(self) -> Self:
        self.cloud.start()
        self.link.mend()
        self.edge.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.edge.kill()
        self.link.cut()
        self.cloud.kill()

    def _bridge(self, node: str) -> str:
        lines = []
        for direction, version, topics in (("in", "mqttv311", _IN), ("out", "mqttv50", _OUT)):
            lines += [
                f"connection {node}-{direction}",
                f"address 127.0.0.1:{self.link.port}",
                f"bridge_protocol_version {version}",
                "cleansession false",
                f"remote_clientid bridge-{node}-{direction}",
                f"local_clientid local-{node}-{direction}",
                *(f"topic sedna/{topic.format(node=node)} {direction} 1" for topic in topics),
                "try_private true",
                "notifications false",
                "bridge_attempt_unsubscribe false",
                "restart_timeout 1 2",
            ]
        return "\n".join(lines)
