from __future__ import annotations

import pytest
from support.sedna import condition
from support.waiting import eventually


def adopted(round_: int):
    """Conditions of a job that Sedna's own controller brought to training its round `round_`."""
    url = f"/output/job1/data/train/{round_}/data.txt"
    return (
        condition("Train", "Waiting", "2024-01-01T00:00:00Z"),
        condition(
            "Train",
            "Ready",
            "2024-01-01T00:00:01Z",
            {"input": {"dataURL": url, "outputDir": f"/output/job1/train/{round_}"}},
        ),
        condition("Train", "Failed", "2024-01-01T00:00:02Z"),
        condition("Train", "Waiting", "2024-01-01T00:00:03Z"),
    )


@pytest.mark.parametrize("before", [0, 3, 300_000], ids=["empty", "small", "more than one look reads"])
def test_an_adopted_job_counts_from_the_present_end_of_its_dataset(lc, gm, before):
    lc.write("/data/ds.txt", "old 0\n" * before)
    gm.dataset()
    gm.job("job1", *adopted(7))
    eventually(lambda: (lc.latest("state/{node}/datasets/default/ds") or {}).get("samples") == before, timeout=30)
    eventually(lambda: (lc.job() or {}).get("version", 0) >= 4)
    assert lc.job()["samples"]["seen"] == 0

    lc.append("/data/ds.txt", "new 1\n" * 5)

    eventually(lambda: lc.job()["round"] == 8)
    assert lc.job()["samples"]["seen"] == 5
    eventually(lambda: lc.file("/output/job1/data/train/8/data.txt").exists())
    assert lc.file("/output/job1/data/train/8/data.txt").read_text() == "new 1\n" * 4
