"""What goes out to and comes in from a broker, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DISCONNECTED", "Connected", "Publication", "Received"]

DISCONNECTED = "disconnected"
"""The error of a publication whose connection ended before the broker confirmed it: publish it again."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A message to publish; correlation data and response topic reach only MQTT 5 brokers."""

    topic: str
    payload: bytes
    retain: bool = False
    qos: int = 1
    correlation: bytes | None = None
    response_topic: str | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A message that arrived; `connection` and `delivery` make it impossible to acknowledge another one instead."""

    topic: str
    payload: bytes
    dup: bool
    retain: bool
    connection: int
    mid: int
    qos: int
    response_topic: str | None = None
    correlation: bytes | None = None
    delivery: int = 0


@dataclass(frozen=True, slots=True)
class Connected:
    """The broker accepted us; `connection` counts 1, 2, 3 …, `protocol` is the level: 5, or 4 for MQTT 3.1.1."""

    connection: int
    session_present: bool
    protocol: int
