from __future__ import annotations

import re

from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready

HEAVY = {"boto3", "botocore", "sklearn", "numpy", "rich", "yaml", "iotcore", "hypothesis"}


def test_a_controller_imports_nothing_heavy_that_it_does_not_need(shared_mosquitto, topic_root, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with ControllerProcess(tmp_path, port=shared_mosquitto.port, topic_root=topic_root) as lc:
        gm = PlayedGm(lc)
        lc.write("/data/ds.txt", "".join(f"s{i}\n" for i in range(10)))
        gm.dataset()
        gm.job()
        gm.expect({"numberOfSamples": 10}, train_ready(1))
        imported = {name.split(".")[0] for name in re.findall(r"import time:.*\| +(\S+)", lc.log)}
    assert "lc_events" in imported
    assert imported & HEAVY == set()
