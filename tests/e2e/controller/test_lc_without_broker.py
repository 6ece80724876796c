"""A broker that is not there stops neither the following of data nor the end of the process."""

from __future__ import annotations

from support.local_controller import ControllerProcess
from support.played_gm import PlayedGm, train_ready
from support.waiting import eventually

TEN = "".join(f"s{i}\n" for i in range(10))


def waiting_for_more(lc: ControllerProcess) -> PlayedGm:
    """A job with three samples that are not enough."""
    gm = PlayedGm(lc)
    lc.write("/data/ds.txt", "a\nb\nc\n")
    gm.dataset()
    gm.job()
    gm.expect({"numberOfSamples": 3})
    eventually(lambda: (s := lc.job()) and s["samples"]["seen"] == 3)
    return gm


def written(lc: ControllerProcess) -> bool:
    with lc.journal() as journal:
        return any(row.name == "TrainDataWritten" for row in journal.rows.rows())


def test_data_is_followed_and_decided_on_while_the_broker_is_down(mosquitto, topic_root, tmp_path):
    with ControllerProcess(tmp_path, port=mosquitto.port, topic_root=topic_root) as lc:
        gm = waiting_for_more(lc)
        mosquitto.stop()
        lc.append("/data/ds.txt", TEN)
        eventually(lambda: written(lc))
        mosquitto.start()
        gm.expect({"numberOfSamples": 13}, train_ready(1))


def test_sigterm_ends_it_while_the_broker_is_down_and_nothing_is_lost(mosquitto, topic_root, tmp_path):
    with ControllerProcess(tmp_path, port=mosquitto.port, topic_root=topic_root) as lc:
        gm = waiting_for_more(lc)
        mosquitto.stop()
        lc.append("/data/ds.txt", TEN)
        eventually(lambda: written(lc))
        assert lc.stop() == 0
        mosquitto.start()
        lc.start()
        gm.expect({"numberOfSamples": 13}, train_ready(1))


def test_it_starts_before_its_broker(mosquitto, topic_root, tmp_path):
    with ControllerProcess(tmp_path, port=mosquitto.port, topic_root=topic_root) as lc:
        gm = waiting_for_more(lc)
        lc.stop()
        lc.append("/data/ds.txt", TEN)
        mosquitto.stop()
        lc.start(wait=False)
        eventually(lambda: written(lc))
        mosquitto.start()
        lc.wait_online()
        gm.expect({"numberOfSamples": 13}, train_ready(1))
        assert [error for error in lc.errors() if error] == []
