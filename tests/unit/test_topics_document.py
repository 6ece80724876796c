from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from lc_events.asyncapi.channels import CHANNELS
from lc_events.asyncapi.document import documents, example_of, schemas
from lc_events.mqtt.topics import TopicKind

TOPICS = Path(__file__).parents[2] / "topics"


def test_every_topic_is_in_the_table_once():
    assert [channel.kind for channel in CHANNELS] == list(TopicKind)


def test_the_committed_documents_are_what_the_models_say():
    committed = {
        str(path.relative_to(TOPICS)): path.read_text(encoding="utf-8")
        for path in TOPICS.rglob("*")
        if path.suffix in {".yaml", ".json", ".md"}
    }
    assert committed == documents()


@pytest.mark.parametrize("channel", [c for c in CHANNELS if c.model is not None], ids=lambda c: c.name)
def test_each_example_fits_its_schema_and_its_model(channel):
    example = example_of(channel)
    Draft202012Validator(schemas()[channel.model.__name__]).validate(example)
    assert channel.model.model_validate(example)
