"""What to examine: the settings of the program that would run here, as far as they can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lc_events.doctor.finding import Finding, ok, wrong
from lc_events.errors import UsageError
from lc_events.mqtt.settings import MqttSettings
from lc_events.mqtt.topics import Topics
from lc_events.settings.programs import GmSettings, LcSettings, broker_settings

__all__ = ["Subject", "check_settings", "read_subject"]

_ATTEMPTS = 4
_NO_CONFIG = Path(os.devnull)
"""An empty file, in place of one that cannot be read."""
_OF_BROKER = ("mqtt_url", "topic_root", "state_dir", "config")
_BROKER = ("mqtt_url", "mqtt_password_file", "mqtt_ca_file", "mqtt_cert_file", "mqtt_key_file")


@dataclass(frozen=True)
class Subject:
    """A local controller's settings or a global manager's; wrong ones are in `faults`, and their defaults here."""

    settings: LcSettings | GmSettings
    faults: tuple[str, ...]
    mqtt: MqttSettings | str
    """The broker, or in words why there is none."""
    topics: Topics
    is_named: bool
    """Whether somebody said where the store is."""

    @property
    def node(self) -> str | None:
        """The node of a local controller; None for a global manager."""
        return self.settings.node if isinstance(self.settings, LcSettings) else None


def read_subject(flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Subject:
    """Read what `run` or `gm` would read; `flags` by field name, None when not given.

    They are the global manager's if only `GM_…` variables name a broker or a folder, as for other commands.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    program = GmSettings if _is_gm(given, environ) else LcSettings
    own = {name: value for name, value in given.items() if name in program.model_fields}
    settings, faults, replaced = _load(program, own)
    mqtt: MqttSettings | str
    try:
        mqtt = broker_settings(**{name: value for name, value in given.items() if name in _OF_BROKER}).mqtt
    except UsageError as error:
        is_known = "mqtt_url" not in replaced and getattr(settings, "mqtt_mode", "external") == "external"
        mqtt = settings.mqtt if is_known else next((fault for fault in faults if "_MQTT_" in fault), str(error))
    variables = ("LC_STORE", "LC_STATE_DIR") if program is LcSettings else ("GM_STATE_DIR",)
    is_named = "store" in given or "state_dir" in given or any(environ.get(name) for name in variables)
    is_named = is_named or settings.config not in (None, _NO_CONFIG)
    return Subject(settings, tuple(faults), mqtt, Topics(settings.topic_root), is_named)


def check_settings(subject: Subject) -> Iterator[Finding]:
    """Everything that the program would refuse to start with."""
    for fault in subject.faults:
        yield wrong("settings", fault, "correct it: docs/reference/settings.md says what is allowed")
    if not subject.faults:
        who = "the global manager" if subject.node is None else f"the local controller of node {subject.node}"
        yield ok("settings", f"{who}, state folder {subject.settings.state_dir}, store {subject.settings.store}")


def _is_gm(given: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    ours = [name for name, value in environ.items() if value and name.startswith(("LC_MQTT_", "LC_ST", "LC_NODE"))]
    theirs = [name for name, value in environ.items() if value and name.startswith(("GM_MQTT_", "GM_STATE_DIR"))]
    return bool(theirs) and not ours and not {"node", "store"} & given.keys()


def _load(
    program: type[LcSettings | GmSettings], flags: Mapping[str, Any]
) -> tuple[LcSettings | GmSettings, list[str], set[str]]:
    """The settings, what is wrong with them, and which ones are defaults in place of wrong ones."""
    given, faults, replaced = dict(flags), list[str](), set[str]()
    for _ in range(_ATTEMPTS):
        try:
            return program(**given), faults, replaced
        except UsageError as error:  # the configuration file
            faults.append(str(error))
            given["config"] = _NO_CONFIG
        except ValidationError as error:
            faults.append(_in_words(program, given))
            defaults = _defaults(program, error)
            given |= defaults
            replaced |= defaults.keys()
    return program.model_construct(**given), faults, replaced


def _in_words(program: type[LcSettings | GmSettings], given: Mapping[str, Any]) -> str:
    try:
        program.load(**given)
    except UsageError as error:
        return str(error)
    return "a setting is wrong"


def _defaults(program: type[LcSettings | GmSettings], error: ValidationError) -> dict[str, Any]:
    """What to go on with in place of wrong settings."""
    wrong_ones = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]} or set(_BROKER)
    found = {}
    for name in wrong_ones & program.model_fields.keys():
        field = program.model_fields[name]
        found[name] = field.get_default(call_default_factory=True, validated_data={})
    if "node" in found:
        found["node"] = "unknown"
    return found
