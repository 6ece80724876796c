"""A client that its broker does not let in, and what it says of that."""

from __future__ import annotations

import re

import pytest

from lc_events.errors import BrokerError
from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.settings import MqttSettings
from support.waiting import eventually


def is_refused(settings: MqttSettings, words: str) -> bool:
    """Wait until a client says why it is not let in.

    The reason shows at the latest after a few tries: a broker that hangs up at once may cut off its own alert.
    """
    address = re.escape(f"{settings.host}:{settings.port}: ")
    with MqttClient(settings, on_message=lambda _: None, reconnect_seconds=(0.1, 0.1)) as client:

        def reason() -> str:
            with pytest.raises(BrokerError, match=address) as refusal:
                client.wait_connected(0)
            return str(refusal.value)

        eventually(lambda: words in reason(), what=words)
    return True
