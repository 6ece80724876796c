"""Insert, update, delete and nonsense, as recorded of Sedna's LC."""

from __future__ import annotations

import json

import pytest
from support.played_gm import PlayedGm
from support.recordings import recording
from support.waiting import eventually


@pytest.mark.parametrize("with_ids", [False, True])
def test_operations_send_and_write_what_sedna_does(lc, with_ids):
    gm = PlayedGm(lc, with_ids=with_ids)
    lc.write("/data/d.txt", "".join(f"s{i:03}.jpg {i % 2}\n" for i in range(10)))
    errors = []
    for line in recording("operations"):
        match line:
            case {"dir": "gm->lc", "header": header, "content": content}:
                kind = header["resourceKind"]
                gm.send(kind, header["resourceName"], content, operation=header["operation"])
                errors += [("kind", gm.last_id)] if kind == "pod" else []
            case {"dir": "gm->lc", "raw": raw}:
                lc.tap.publish(lc.topic("down/{node}/lifelonglearningjob/default/jx"), raw)
                errors.append(("malformed", None))
            case {"dir": "lc->gm", "header": header, "content": content}:
                heard = gm.next_up()
                assert heard["content"] == json.loads(content)
                assert heard["header"] == header
            case {"dir": "fs", "files": files}:
                assert lc.tree("/output/job1") == files
    eventually(lambda: len(lc.errors()) == len(errors))
    assert [(error["code"], error["id"]) for error in lc.errors()] == errors
    state = eventually(lambda: (s := lc.job()) and s["generation"] == 2 and s["triggers"]["train"] == "completed" and s)
    assert (state["round"], state["samples"]["seen"]) == (1, 10)
    assert state["counts"]["gm_messages"] == 5 - (not with_ids)


def test_a_delete_of_what_was_never_there_ends_with_the_empty_payload(lc, gm):
    gm.delete("never")
    topics = [lc.topic(f"state/{{node}}/{what}/default/never") for what in ("jobs", "models")]
    for topic in topics:
        assert lc.tap.wait_for_topic(topic).payload == b""
    assert lc.errors() == []
