from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.errors import RefusedError, StorageError
from lc_events.messages.worker import WorkOrder
from lc_events.storage import S3Clients
from lc_events.workers.environment import expand, program_environment
from lc_events.workers.objects import ObjectFolder
from lc_events.workers.settings import AgentSettings


def environment(order: WorkOrder, settings: AgentSettings, **own: str) -> dict[str, str]:
    settings = dataclasses.replace(settings, environ={**settings.environ, **own})
    run = Path("/run/w1")
    objects = ObjectFolder.of_environment(run / "objects", {}, S3Clients())
    made = program_environment(order, "w1", settings, run_folder=run, result_file=run / "work/r", objects=objects)
    return dict(made.variables)


def test_a_program_is_told_what_sedna_tells_it(order_of: Callable[..., WorkOrder], settings: AgentSettings):
    order = order_of(round=3, env={"HAS_COMPLETED_INITIAL_TRAINING": "true", "EPOCHS": "5"})
    made = environment(order, settings)
    expected = {
        "JOB_NAME": "job1",
        "NAMESPACE": "default",
        "WORKER_NAME": "w1",
        "HAS_COMPLETED_INITIAL_TRAINING": "true",
        "EPOCHS": "5",
        "LC_RESULT_FILE": "/run/w1/work/r",
        "LC_STAGE": "Train",
        "LC_ROUND": "3",
        "WORKER_PROGRAMS": str(settings.programs),
        "HOME": "/home/agent",
    }
    assert expected.items() <= made.items()


def test_local_urls_become_paths_below_the_root(order_of: Callable[..., WorkOrder], settings: AgentSettings):
    made = environment(
        order_of(
            env={"TRAIN_DATASET_URL": "/output/job1/data/train/1/data.csv", "MODEL_URLS": "/a.pkl;s3://b/c.pkl"},
            output_url="/output/job1/train/1",
        ),
        settings,
    )
    assert made["TRAIN_DATASET_URL"] == f"{settings.root}/output/job1/data/train/1/data.csv"
    assert made["MODEL_URLS"] == f"{settings.root}/a.pkl;/run/w1/objects/b/c.pkl"
    assert made["OUTPUT_URL"] == f"{settings.root}/output/job1/train/1"


def test_with_the_root_at_the_top_paths_stay_as_they_are(order_of: Callable[..., WorkOrder], settings: AgentSettings):
    made = environment(order_of(env={"OUTPUT_URL": "/out"}), dataclasses.replace(settings, root=Path("/")))
    assert made["OUTPUT_URL"] == "/out"


def test_a_url_that_climbs_out_of_the_root_is_refused(order_of: Callable[..., WorkOrder], settings: AgentSettings):
    with pytest.raises(StorageError, match="leads out of"):
        environment(order_of(env={"OUTPUT_URL": "/out/../../../etc"}), settings)


def test_only_a_few_variables_of_the_agent_are_inherited(order_of: Callable[..., WorkOrder], settings: AgentSettings):
    made = environment(order_of(), settings, AWS_SECRET_ACCESS_KEY="s3cret", SOMETHING="else")
    assert not made.keys() & {"WORKER_MQTT_URL", "AWS_SECRET_ACCESS_KEY", "SOMETHING"}


def test_a_secret_comes_from_the_agent_and_never_from_the_order(
    order_of: Callable[..., WorkOrder], settings: AgentSettings
):
    order = order_of(env={"API_TOKEN": "***"}, secret_env=["DB_PASSWORD"])
    made = environment(order, settings, API_TOKEN="own-token", DB_PASSWORD="own-password")
    assert (made["API_TOKEN"], made["DB_PASSWORD"]) == ("own-token", "own-password")


@pytest.mark.parametrize("name", ["API_KEY", "db_password", "GITHUB_TOKEN", "MY_SECRET", "CREDENTIALS"])
def test_a_secret_that_the_node_lacks_is_named(name: str, order_of: Callable[..., WorkOrder], settings: AgentSettings):
    with pytest.raises(RefusedError, match=f"the value of {name} .*set it in the environment"):
        environment(order_of(env={name: "x"}), settings)


def test_an_order_cannot_read_the_settings_of_lc_events(order_of: Callable[..., WorkOrder], settings: AgentSettings):
    with pytest.raises(RefusedError, match="belongs to lc-events itself"):
        environment(order_of(secret_env=["WORKER_MQTT_URL"]), settings)


@pytest.mark.parametrize(
    "env",
    [
        {"LD_PRELOAD": "/x.so"},
        {"LD_LIBRARY_PATH": "/x"},
        {"BASH_ENV": "/x"},
        {"PATH": "/x"},
        {"A B": "1"},
        {"": "1"},
        {"A=B": "1"},
    ],
)
def test_names_that_are_none_or_change_loading_are_refused(
    env: dict[str, str], order_of: Callable[..., WorkOrder], settings: AgentSettings
):
    with pytest.raises(RefusedError):
        environment(order_of(env=env), settings)


def test_credentials_of_the_store_are_there_when_a_url_lies_in_it(
    order_of: Callable[..., WorkOrder], settings: AgentSettings
):
    order = order_of(env={"OUTPUT_URL": "s3://bucket/out"})
    made = environment(order, settings, AWS_ACCESS_KEY_ID="id", S3_ENDPOINT_URL="http://minio:9000")
    assert (made["AWS_ACCESS_KEY_ID"], made["S3_ENDPOINT_URL"]) == ("id", "http://minio:9000")
    assert (made["OUTPUT_URL"], made["LC_OBJECTS"]) == ("/run/w1/objects/bucket/out", "/run/w1/objects")


def test_values_refer_to_earlier_ones_as_in_kubernetes(order_of: Callable[..., WorkOrder], settings: AgentSettings):
    made = environment(order_of(env={"BASE": "$(WORKER_PROGRAMS)/digits", "SCRIPT": "$(BASE)/train.py"}), settings)
    assert made["SCRIPT"] == f"{settings.programs}/digits/train.py"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)/$(B)", "1/2"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$A ${A} $(A", "$A ${A} $(A"),
        ("cost: 5$$", "cost: 5$"),
    ],
)
def test_references_are_those_of_kubernetes(text: str, expanded: str):
    assert expand(text, {"A": "1", "B": "2"}) == expanded


@given(st.text(alphabet="$()AB{} ", max_size=30))
def test_text_without_dollars_is_never_changed(text: str):
    plain = text.replace("$", "")
    assert expand(plain, {"A": "1", "B": "2"}) == plain
    assert expand(text.replace("$", "$$"), {"A": "1", "B": "2"}) == text
