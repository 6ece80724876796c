"""The settings of each program (CONTRACT section 4); what a field means stands in `docs/reference/settings.md`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from lc_events.errors import UsageError
from lc_events.mqtt.settings import MqttSettings
from lc_events.settings.fields import (
    FilePath,
    Folder,
    LogFormat,
    LogLevel,
    MessageBytes,
    ModelPlaces,
    NodeName,
    Seconds,
    StoreFile,
    TopicRoot,
    Word,
    Words,
    ZoneName,
    host_name,
)
from lc_events.settings.files import (
    GM_STATE_DIR,
    LC_STATE_DIR,
    STORE_NAME,
    WORKER_STATE_DIR,
    internal_broker_url,
)
from lc_events.settings.sources import ProgramSettings
from lc_events.settings.timezone import system_zone
from lc_events.storage.s3_clients import READ_SECONDS
from lc_events.workers.settings import AgentSettings

__all__ = ["BrokerSettings", "GmSettings", "LcSettings", "StorageSettings", "WorkerSettings", "broker_settings"]


class _BrokerFields(ProgramSettings):
    """What everything that talks to a broker may be told."""

    mqtt_url: str = Field("mqtt://127.0.0.1:1883", repr=False)
    """Not in the repr: a password may stand in it."""
    mqtt_password_file: FilePath | None = None
    mqtt_ca_file: FilePath | None = None
    mqtt_cert_file: FilePath | None = None
    mqtt_key_file: FilePath | None = None
    topic_root: TopicRoot = "sedna"
    log: LogLevel = "info"
    log_format: LogFormat = "text"

    @property
    def client_id(self) -> str | None:
        """The MQTT client id; None: a new one for each connection, and no session."""
        return None

    @cached_property
    def mqtt(self) -> MqttSettings:
        """The broker and how to log in there."""
        return MqttSettings.from_url(
            self.mqtt_url,
            client_id=self.client_id,
            password_file=self.mqtt_password_file,
            ca_file=self.mqtt_ca_file,
            cert_file=self.mqtt_cert_file,
            key_file=self.mqtt_key_file,
        )

    @model_validator(mode="after")
    def _broker_can_be_named(self) -> Self:
        try:
            _ = self.mqtt
        except UsageError as error:
            field = "mqtt_password_file" if error.code == "password_file" else "mqtt_…"
            raise ValueError(f"{self.variable(field)}: {error}") from None
        return self


class _ClientFields(_BrokerFields):
    """What a program with a session of its own may be told besides."""

    mqtt_client_id: Word | None = None


class LcSettings(_ClientFields):
    """Settings of `run`, the local controller."""

    model_config = SettingsConfigDict(env_prefix="LC_")
    sedna_names: ClassVar[Mapping[str, str]] = {"node": "NODENAME", "root": "ROOTFS_MOUNT_DIR"}

    node: NodeName = Field(default_factory=host_name)
    mqtt_mode: Literal["external", "internal"] = "external"
    state_dir: Folder = LC_STATE_DIR
    store: StoreFile = Field(default_factory=lambda data: data.get("state_dir", LC_STATE_DIR) / STORE_NAME)
    root: Folder = Path("/")
    model_places: ModelPlaces = ()
    tick_seconds: Seconds | None = None
    """None: each trigger's `checkPeriodSeconds`, else 60."""
    ticks: Literal["all", "decisive"] = "all"
    dataset_seconds: Seconds = 60.0
    s3_ca_file: FilePath | None = None
    s3_timeout_seconds: Seconds = READ_SECONDS
    timezone: ZoneName = Field(default_factory=system_zone)
    max_message_bytes: MessageBytes = 1_048_576

    @property
    def client_id(self) -> str:
        """One LC per node, so one session per node."""
        return self.mqtt_client_id or f"lc-{self.node}"

    @property
    def closed(self) -> tuple[Path, ...]:
        """Our own files and folders, which no job may read or write."""
        return tuple(path for _, path in _closed(type(self), dict(self)))

    @field_validator("model_places")
    @classmethod
    def _no_place_opens_what_is_secret(cls, places: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Jobs' credentials lie in the state folder, our own beside it, and a history is nobody's model."""
        for place in places:
            if place.startswith("/") and "root" in info.data:
                folder = Path(os.path.realpath(info.data["root"] / place.lstrip("/")))
                for what, path in _closed(cls, info.data):
                    if path.is_relative_to(folder) or (what == "the state folder" and folder.is_relative_to(path)):
                        raise ValueError(f"{place} opens {what} {path}")
        return places


def _closed(cls: type[ProgramSettings], settings: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """What no place of models or outputs may hold, links followed; settings that are wrong themselves are left out."""
    key = "mqtt_key_file" if settings.get("mqtt_key_file") else "mqtt_cert_file"
    for field in ("state_dir", "store", "mqtt_password_file", key, "config"):
        if path := settings.get(field):
            real = Path(os.path.realpath(path))
            yield "the state folder" if field == "state_dir" else cls.variable(field), real
            if field == "store":
                yield cls.variable(field), real.with_name(f"{real.name}-wal")


class GmSettings(_ClientFields):
    """Settings of `gm`, the stand-alone global manager."""

    model_config = SettingsConfigDict(env_prefix="GM_")

    state_dir: Folder = GM_STATE_DIR

    @property
    def client_id(self) -> str:
        """There is one global manager on a broker."""
        return self.mqtt_client_id or "gm"

    @property
    def store(self) -> Path:
        """The event store, always in the state folder."""
        return self.state_dir / STORE_NAME


class WorkerSettings(_ClientFields):
    """Settings of `worker`, the agent that runs a node's programs."""

    model_config = SettingsConfigDict(env_prefix="WORKER_")
    sedna_names: ClassVar[Mapping[str, str]] = {"node": "NODENAME", "root": "ROOTFS_MOUNT_DIR"}

    node: NodeName = Field(default_factory=host_name)
    state_dir: Folder = WORKER_STATE_DIR
    root: Folder = Path("/")
    programs: Folder = Path()
    allow: Words = ("python", "python3")
    concurrency: int = Field(2, gt=0)
    grace_seconds: Seconds = 5.0
    s3_ca_file: FilePath | None = None
    s3_timeout_seconds: Seconds = READ_SECONDS

    @property
    def agent(self) -> AgentSettings:
        """What the agent itself must know."""
        return AgentSettings(
            node=self.node,
            state_dir=self.state_dir,
            root=self.root,
            programs=self.programs,
            allow=self.allow,
            concurrency=self.concurrency,
            grace_seconds=self.grace_seconds,
            s3_ca_file=self.s3_ca_file,
            s3_timeout_seconds=self.s3_timeout_seconds,
        )

    @property
    def client_id(self) -> str:
        """One agent per node."""
        return self.mqtt_client_id or f"worker-{self.node}"


class BrokerSettings(_BrokerFields):
    """Settings of a command that talks to a broker for a moment.

    The client id is not among them, lest a command throw the running program out.
    """

    model_config = SettingsConfigDict(env_prefix="LC_")
    foreign_names: ClassVar[Collection[str]] = LcSettings.model_fields.keys() | GmSettings.model_fields.keys()

    mqtt_mode: Literal["external", "internal"] = "external"
    state_dir: Folder = LC_STATE_DIR

    @cached_property
    def mqtt(self) -> MqttSettings:
        """The broker and how to log in there; that of an LC in internal mode from what it wrote down."""
        if self.mqtt_mode == "internal":
            return MqttSettings.from_url(internal_broker_url(self.state_dir))
        return super().mqtt


class StorageSettings(ProgramSettings):
    """Settings of a command that reads the files of jobs; what else is set for `run` does not concern it."""

    model_config = SettingsConfigDict(env_prefix="LC_")
    sedna_names: ClassVar[Mapping[str, str]] = {"root": "ROOTFS_MOUNT_DIR"}
    foreign_names: ClassVar[Collection[str]] = LcSettings.model_fields.keys()

    root: Folder = Path("/")
    s3_ca_file: FilePath | None = None
    s3_timeout_seconds: Seconds = READ_SECONDS


class _GmBrokerSettings(BrokerSettings):
    model_config = SettingsConfigDict(env_prefix="GM_")


def broker_settings(**flags: Any) -> BrokerSettings:
    """All from `LC_…` if one of `LC_MQTT_…` is set, or else from `GM_…` if one of `GM_MQTT_…` is; UsageError as `load`.

    The two are never mixed, lest one broker be given the password of the other.
    """
    prefixes = {variable[:8] for variable, value in os.environ.items() if value}
    from_gm = "GM_MQTT_" in prefixes and "LC_MQTT_" not in prefixes
    return (_GmBrokerSettings if from_gm else BrokerSettings).load(**flags)
