from __future__ import annotations

from support.given import STREAM, given, gm
from support.s3 import annotations
from support.sedna import condition

from lc_events.controller.locations import Locations
from lc_events.controller.world import World
from lc_events.doctor.data import check_places
from lc_events.doctor.finding import Level
from lc_events.storage import LocalStorage, S3Clients, Storages


def test_buckets_that_models_may_lie_in_are_asked_for(moto_endpoint, tmp_path):
    world = World()
    world.replace({STREAM: given(gm(condition("Train", "Waiting"))).state})
    secret = {"metadata/annotations/sedna.io/credential": annotations(moto_endpoint)["sedna.io/credential"]}
    storages = Storages(LocalStorage(tmp_path), S3Clients())
    locations = Locations(world, lambda stream: secret if stream == STREAM else {}, storages, tmp_path)

    [there] = check_places(("s3://bkt", "s3://other/released"), world, locations)
    [missing] = check_places(("s3://bkt", "s3://none/released"), world, locations)

    assert there == ("model places", Level.OK, "s3://bkt, s3://other/released", None)
    assert missing.level is Level.WRONG
    assert "there is no such bucket" in missing.says
