from __future__ import annotations

import orjson
from support.sedna import job_resource

from lc_events.messages.secrets import MASK, restore, separate

CREDENTIAL = '{"ACCESS_KEY_ID": "AKID", "SECRET_ACCESS_KEY": "SECRETKEY123"}'


def resource_with_secrets():
    resource = job_resource(annotations={"sedna.io/credential": CREDENTIAL, "sedna.io/Train": "edge1"})
    resource["spec"]["trainSpec"]["template"]["spec"]["containers"] = [
        {"name": "c", "env": [{"name": "epochs", "value": "3"}, {"name": "API_TOKEN", "value": "t0psecret"}]}
    ]
    return resource


def test_secrets_are_taken_out_and_can_be_put_back():
    resource = resource_with_secrets()
    masked, secrets = separate(resource)
    text = orjson.dumps(masked).decode()
    assert "SECRETKEY123" not in text
    assert "t0psecret" not in text
    assert masked["metadata"]["annotations"] == {"sedna.io/credential": MASK, "sedna.io/Train": "edge1"}
    assert restore(masked, secrets) == resource


def test_a_resource_without_secrets_stays_as_it_is():
    assert separate(job_resource()) == (job_resource(), {})


def test_separating_twice_changes_nothing_more():
    masked, _ = separate(resource_with_secrets())
    assert separate(masked) == (masked, {})
