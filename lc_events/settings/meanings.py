"""What each setting means, in the words of `--help` and of `docs/reference/settings.md`; light, for `--help` is fast.

The models in `programs` hold the types and the defaults; a test keeps the two together.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GM", "LC", "WORKER", "Meaning", "Program"]


class Meaning(NamedTuple):
    """One setting: its default in words, and what it is for."""

    default: str
    text: str


class Program(NamedTuple):
    """The settings of one program, by field."""

    prefix: str
    settings: dict[str, Meaning]
    sedna_names: dict[str, str]


_MQTT = {
    "mqtt_url": Meaning("mqtt://127.0.0.1:1883", "broker: mqtt:// or mqtts://, user, host, port"),
    "mqtt_password_file": Meaning("none", "file with the password of the user in the URL"),
    "mqtt_ca_file": Meaning("the system's CAs", "CA certificates (PEM) that the broker's one must come from"),
    "mqtt_cert_file": Meaning("none", "our client certificate (PEM)"),
    "mqtt_key_file": Meaning("the certificate's file", "key of our client certificate (PEM, no pass phrase)"),
}
_COMMON = {
    "topic_root": Meaning("sedna", "first level or levels of every topic"),
    "log": Meaning("info", "log from this level on: debug, info, warning, error"),
    "log_format": Meaning("text", "one line a record: text, or json for machines"),
}
_CONFIG = {"config": Meaning("none", "TOML file with settings: these names in lower case, without the prefix")}
_NODE = {"node": Meaning("host name", "this edge node: 1 to 64 of A-Z a-z 0-9 _ . -, and not gm")}
_ROOT = {"root": Meaning("/", "prefix of every local path of a resource; paths sent to GM are without it")}
_S3 = {
    "s3_ca_file": Meaning("boto3's CAs", "CA certificates (PEM) that an S3 server's one must come from"),
    "s3_timeout_seconds": Meaning("20", "an S3 server that sends nothing for so long is slow, and asked again later"),
}
_SEDNA_NAMES = {"node": "NODENAME", "root": "ROOTFS_MOUNT_DIR"}

LC = Program(
    "LC_",
    {
        **_NODE,
        **_MQTT,
        "mqtt_client_id": Meaning("lc-NODE", "MQTT client id, which names the session"),
        "mqtt_mode": Meaning("external", "external broker, or internal: one that we start"),
        "store": Meaning("events.db in the state folder", "event store: sqlite:///FILE, or a path"),
        "state_dir": Meaning(
            "lc-state", "folder of all that the LC keeps: store, spooled samples, secrets, quarantine"
        ),
        **_ROOT,
        "model_places": Meaning(
            "none",
            "where a model may lie besides its job's outputDir: local folders and s3://BUCKET/PREFIX, commas between",
        ),
        "tick_seconds": Meaning("the trigger's checkPeriodSeconds, else 60", "overrides the period of ticks"),
        "ticks": Meaning("all", "all: every tick is an event; decisive: those that change the verdict, hourly a count"),
        "dataset_seconds": Meaning(
            "60", "period of looking at a dataset where the file system gives no notice, and at S3"
        ),
        **_S3,
        "timezone": Meaning("the system's", "zone of a trigger's daily window, as Europe/Berlin"),
        "max_message_bytes": Meaning("1048576", "larger messages are refused"),
        **_COMMON,
        **_CONFIG,
    },
    _SEDNA_NAMES,
)
GM = Program(
    "GM_",
    {
        **_MQTT,
        "mqtt_client_id": Meaning("gm", "MQTT client id, which names the session"),
        "state_dir": Meaning("gm-state", "folder of all that the global manager keeps"),
        **_COMMON,
        **_CONFIG,
    },
    {},
)
WORKER = Program(
    "WORKER_",
    {
        **_NODE,
        **_MQTT,
        "mqtt_client_id": Meaning("worker-NODE", "MQTT client id, which names the session"),
        "state_dir": Meaning("worker-state", "folder of all that the agent keeps"),
        **_ROOT,
        "allow": Meaning("python,python3", "executables that the agent may start, with commas between"),
        "programs": Meaning(".", "folder of the programs, $(WORKER_PROGRAMS) in a job's command"),
        "concurrency": Meaning("2", "train and eval programs that run at one time; others wait"),
        "grace_seconds": Meaning("5", "between asking a program to end and ending it"),
        **_S3,
        **_COMMON,
        **_CONFIG,
    },
    _SEDNA_NAMES,
)
