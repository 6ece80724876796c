"""AsyncAPI 3 with MQTT bindings, and a JSON Schema per message, from the topic table and the pydantic models."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import yaml

from lc_events.asyncapi.channels import CHANNELS, Channel
from lc_events.asyncapi.events_page import events_page

__all__ = ["documents", "example_of", "schemas"]

Files = dict[str, str]
"""Path below `topics/` to text."""

_PARAMETERS = {
    "node": "edge node, [A-Za-z0-9_.-]{1,64}, not gm",
    "resource_kind": "lifelonglearningjob or dataset",
    "namespace": "RFC 1123 label",
    "name": "RFC 1123 name of the resource",
    "worker": "worker, [A-Za-z0-9_.-]{1,64}",
    "verb": "state, history, why or verify",
    "asker": "who asked: reply_to of the request",
    "request": "any name of the operator's, [A-Za-z0-9_.-]{1,64}",
}


def documents() -> Files:
    """All files of `topics/`: `asyncapi.yaml`, `events.md`, `schemas/*.json`, `examples/*.json`."""
    found = {"asyncapi.yaml": yaml.safe_dump(_document(), sort_keys=False, allow_unicode=True, width=120)}
    for name, schema in schemas().items():
        found[f"schemas/{name}.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    found["events.md"] = events_page()
    for channel in CHANNELS:
        if channel.example:
            found[f"examples/{channel.example}.json"] = _read_example(channel.example)
    return found


def schemas() -> dict[str, dict[str, Any]]:
    """A JSON Schema (2020-12) for each message, by the name of its model."""
    models = {channel.model.__name__: channel.model for channel in CHANNELS if channel.model is not None}
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(by_alias=True)}
        for name, model in sorted(models.items())
    }


def example_of(channel: Channel) -> Any:
    """A real message of a channel."""
    return json.loads(_read_example(channel.example))


def _read_example(name: str) -> str:
    return (files("lc_events.asyncapi") / "examples" / f"{name}.json").read_text(encoding="utf-8")


def _document() -> dict[str, Any]:
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "lc-events",
            "version": "1",
            "description": "Sedna's local controller over MQTT. Addresses stand below a root, `sedna` by default.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "edge": {
                "host": "127.0.0.1:1883",
                "protocol": "mqtt",
                "description": "the broker of an edge node",
                "tags": [{"name": "MQTT 5"}, {"name": "MQTT 3.1.1"}],
            }
        },
        "channels": {channel.name: _channel(channel) for channel in CHANNELS},
        "operations": {f"{channel.sender}_sends_{channel.name}": _operation(channel) for channel in CHANNELS},
        "components": {"messages": {channel.name: _message(channel) for channel in CHANNELS}},
    }


def _channel(channel: Channel) -> dict[str, Any]:
    parameters = re.findall(r"\{(\w+)\}", channel.address)
    return {
        "address": f"sedna/{channel.address}",
        "description": f"{channel.sender} to {channel.receiver}: {channel.says}",
        "messages": {"message": {"$ref": f"#/components/messages/{channel.name}"}},
        "parameters": {name: {"description": _PARAMETERS[name]} for name in parameters},
    }


def _operation(channel: Channel) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{channel.name}"},
        "summary": channel.says,
        "bindings": {"mqtt": {"qos": 1, "retain": channel.retained, "bindingVersion": "0.2.0"}},
    }


def _message(channel: Channel) -> dict[str, Any]:
    if channel.model is None:
        return {"contentType": "text/plain", "payload": {"type": "string", "enum": ["0", "1"]}, "summary": channel.says}
    return {
        "name": channel.model.__name__,
        "summary": channel.says,
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-07",
            "schema": {"$ref": f"schemas/{channel.model.__name__}.json"},
        },
        "examples": [{"payload": example_of(channel)}],
    }
