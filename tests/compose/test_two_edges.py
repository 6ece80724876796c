"""One story, told in order: two edges learn, the cloud goes away, a broker dies, a cable is pulled, nothing is lost."""

from __future__ import annotations

import time

import orjson
import pytest
from support.heard import events_heard
from support.waiting import eventually

pytestmark = [pytest.mark.compose, pytest.mark.timeout(2400)]

NODES = ("edge1", "edge2")


def deployed_round(compose, node: str) -> int:
    model = compose.show(node)["model"]
    return model["round"] if model else 0


def wait_for_round(compose, node: str, number: int, timeout: float = 300) -> None:
    eventually(lambda: deployed_round(compose, node) >= number, timeout, f"{node} at round {number}")


def is_nothing_missing(running, node: str) -> bool:
    """Whether the cloud has heard each event of a node's job up to the store's newest, each linked to the last."""
    topic = f"sedna/events/{node}/jobs/default/digits-{node}"
    heard = events_heard(running.auditor, topic).get(f"default/lifelonglearningjob/digits-{node}", {})
    links = {m.json["sequence"]: (m.json["prevhash"], m.json["hash"]) for m in running.auditor.of(topic)}
    versions = range(1, running.compose.show(node)["version"] + 1)
    return heard.keys() >= set(versions) and all(
        links[version][0] == (links[version - 1][1] if version > 1 else "") for version in versions
    )


def catches_up(running, node: str, number: int) -> None:
    """Wait until a node's round is deployed, and the cloud has heard all of both nodes."""
    wait_for_round(running.compose, node, number)
    for each in NODES:
        eventually(lambda each=each: is_nothing_missing(running, each), 120, f"all of {each}")


def attempts(compose, node: str) -> int:
    """How often the bridge of a node has said that it connects: once or twice for an attempt of each connection."""
    return compose.run("logs", f"{node}-broker").count("Connecting bridge")


def checks(compose, service: str) -> dict[str, int]:
    """When the engine last checked a service's health, and the exit codes; it keeps the last five."""
    return {check["Start"]: check["ExitCode"] for check in compose.state(service)["Health"]["Log"]}


def test_both_edges_are_at_round_2_within_five_minutes(running):
    deadline = time.monotonic() + 300
    for node in NODES:
        wait_for_round(running.compose, node, 2, deadline - time.monotonic())


def test_every_one_shot_ends_well_and_every_service_says_that_it_is_healthy(running):
    for service in ("certificates", "passwords", "apply", "edge1-samples", "edge2-samples"):
        running.compose.wait_done(service)
    for service in ("cloud-broker", "gm", *(f"{node}-{name}" for node in NODES for name in ("broker", "lc", "worker"))):
        running.compose.wait_healthy(service)


def test_the_global_manager_sees_both_jobs(running):
    jobs = orjson.loads(running.compose.execute("gm", "lc-events", "jobs", "-o", "json"))
    assert {(job["name"], job["node"]) for job in jobs} == {("digits-edge1", "edge1"), ("digits-edge2", "edge2")}


@pytest.mark.parametrize("node", NODES)
def test_a_subscriber_at_the_cloud_hears_every_event_of_a_node(running, node):
    eventually(lambda: is_nothing_missing(running, node), 60)


def test_no_service_runs_as_root_or_can_write_to_its_image(running):
    for service in ("cloud-broker", "gm", "edge1-broker", "edge1-lc", "edge1-worker"):
        assert running.compose.execute(service, "id", "-u").strip() in ("1883", "10001")
        assert running.compose.execute(service, "sh", "-c", "touch /x 2>/dev/null || echo no").strip() == "no"


def test_an_edge_knows_no_secret_of_the_cloud_or_of_another_edge(running):
    assert running.compose.execute("edge1-lc", "ls", "/secrets").split() == ["edge1"]
    kept = running.compose.execute("edge1-lc", "sh", "-c", "cat /secrets/edge1/passwords 2>/dev/null || echo no")
    assert kept.strip() == "no"


def test_an_edge_goes_on_while_its_bridge_seeks_the_cloud_in_vain_and_the_cloud_catches_up(running):
    compose = running.compose
    before = compose.show("edge1")
    compose.run("stop", "cloud-broker")
    tried, checked = attempts(compose, "edge1"), checks(compose, "edge1-lc")
    compose.add_samples("edge1", 3)
    eventually(lambda: compose.show("edge1")["round"] == before["round"] + 1, 30, "a new round without the cloud")
    eventually(lambda: attempts(compose, "edge1") >= tried + 12, 180, "at least three attempts of both connections")
    since = eventually(lambda: not (new := checks(compose, "edge1-lc")).keys() & checked and new, 60, "five checks")
    assert set(since.values()) == {0}
    compose.run("start", "cloud-broker")
    catches_up(running, "edge1", before["round"] + 1)


def test_a_round_that_runs_when_the_cloud_goes_away_is_finished(running):
    compose = running.compose
    before = compose.show("edge2")
    compose.add_samples("edge2", 3)
    eventually(lambda: compose.show("edge2")["type"] == "Running", 60, "a worker that runs")
    compose.run("stop", "cloud-broker")
    results = before["counts"]["worker_results"] + 2
    eventually(lambda: compose.show("edge2")["counts"]["worker_results"] >= results, 60, "the result of the worker")
    compose.run("start", "cloud-broker")
    catches_up(running, "edge2", before["round"] + 1)


def test_nothing_is_missing_when_the_broker_of_an_edge_is_killed(running):
    compose = running.compose
    before = compose.show("edge1")
    compose.add_samples("edge1", 4)
    eventually(lambda: compose.show("edge1")["round"] == before["round"] + 1, 30, "a new round")
    compose.run("kill", "-s", "SIGKILL", "edge1-broker")
    eventually(lambda: compose.state("edge1-lc")["Health"]["Status"] == "unhealthy", 90)
    compose.run("up", "-d", "--no-deps", "edge1-broker")
    wait_for_round(compose, "edge1", before["round"] + 1)
    compose.wait_healthy("edge1-lc")
    eventually(lambda: is_nothing_missing(running, "edge1"), 120)


def test_nothing_is_missing_when_the_broker_of_an_edge_is_killed_while_the_cloud_is_away(running):
    compose = running.compose
    before = compose.show("edge1")
    compose.run("stop", "cloud-broker")
    compose.add_samples("edge1", 5)
    eventually(lambda: compose.show("edge1")["round"] == before["round"] + 1, 30, "a new round without the cloud")
    # what the broker was told since it saved last is gone
    compose.run("kill", "-s", "SIGKILL", "edge1-broker")
    compose.run("up", "-d", "--no-deps", "edge1-broker")
    compose.run("start", "cloud-broker")
    catches_up(running, "edge1", before["round"] + 1)


def test_nothing_is_missing_when_an_edge_was_cut_off(running):
    compose = running.compose
    before = compose.show("edge2")
    network, broker = f"{compose.project}_cloud", compose.container("edge2-broker")
    compose.docker("network", "disconnect", network, broker)
    compose.add_samples("edge2", 4)
    eventually(lambda: compose.show("edge2")["round"] == before["round"] + 1, 60, "a new round without the cloud")
    link = "sedna/state/edge2/link"
    running.auditor.wait_for(lambda message: message.topic == link and message.payload == b"0", 60)
    compose.docker("network", "connect", "--alias", "edge2-broker", network, broker)
    wait_for_round(compose, "edge2", before["round"] + 1)
    eventually(lambda: is_nothing_missing(running, "edge2"), 120)
    eventually(lambda: running.auditor.of(link)[-1].payload == b"1", 60)


def test_a_client_from_elsewhere_comes_in_by_its_certificate_alone(running):
    running.compose.run("--profile", "tls", "up", "-d", "auditor", timeout=300)
    running.compose.add_samples("edge1", 6)
    eventually(lambda: "sedna/events/edge1/jobs/default/digits-edge1" in running.compose.run("logs", "auditor"), 60)


def test_an_s3_server_serves_both_edges_with_keys_that_it_made(running):
    compose = running.compose
    compose.run("--profile", "s3", "build", "s3", timeout=900)
    compose.run("--profile", "s3", "up", "-d", "s3", timeout=300)
    compose.wait_healthy("s3", 120)
    storage = "from lc_events.storage import Credential, S3Clients; s = S3Clients().storage(Credential())"
    put = f"{storage}; s.make_bucket('bkt'); s.write('s3://bkt/a', [b'digits'])"
    get = f"{storage}; print(b''.join(s.read('s3://bkt/a')).decode())"
    compose.execute("edge1-worker", "python", "-c", put)
    assert compose.execute("edge2-lc", "python", "-c", get).strip() == "digits"


def test_another_up_changes_nothing_that_runs(running):
    compose = running.compose
    services = ("cloud-broker", "gm", "edge1-broker", "edge1-lc")
    before = [(compose.container(service), compose.state(service)["StartedAt"]) for service in services]
    secret = compose.secret("gm", "/secrets/cloud/users/gm")
    compose.run("up", "-d", timeout=600)
    for service in ("certificates", "passwords", "apply"):
        compose.wait_done(service)
    assert [(compose.container(service), compose.state(service)["StartedAt"]) for service in services] == before
    assert compose.secret("gm", "/secrets/cloud/users/gm") == secret
    assert deployed_round(compose, "edge1") >= 3
