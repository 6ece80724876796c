from __future__ import annotations

import hashlib

from support.program import EXAMPLES, Program
from support.s3 import storage_at
from support.tap import Tap


def test_a_device_gets_its_model_from_s3(moto_endpoint, prefix, shared_mosquitto, topic_root, tmp_path):
    model = b"a model" * 300_000
    url = f"{prefix}/output/job1/deploy/index.pkl"
    with Tap(shared_mosquitto.port) as tap:
        announcement = {"round": 1, "url": url, "size": len(model), "sha256": hashlib.sha256(model).hexdigest()}
        tap.publish(f"{topic_root}/state/edge1/models/default/job1", announcement, retain=True)
    environment = {
        "MQTT_URL": shared_mosquitto.url,
        "S3_ENDPOINT_URL": f"http://{moto_endpoint}",
        "ACCESS_KEY_ID": "any",
        "SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    script = EXAMPLES / "device" / "device.py"
    arguments = ("job1", "--node", "edge1", "--root", topic_root)
    with Program(tmp_path, script, *arguments, environment=environment) as device:
        device.says("trying again")
        storage_at(moto_endpoint).write(url, [model])
        device.says("the model of round 1 is in use")
    with Program(tmp_path, script, *arguments, "--once", environment=environment) as device:
        assert device.ended().code == 0
    assert (tmp_path / "model.pkl").read_bytes() == model
