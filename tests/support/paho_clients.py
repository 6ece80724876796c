"""Ending a client of paho."""

from __future__ import annotations

import paho.mqtt.client as paho


def end(client: paho.Client) -> None:
    """Disconnect, and close all that the client has open: what it wakes its own thread with, paho leaves to chance."""
    client.disconnect()
    client.loop_stop()
    client._reset_sockets()
