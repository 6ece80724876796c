from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_events.errors import RefusedError, UsageError
from lc_events.mqtt.topics import ParsedTopic, TopicKind, Topics

words = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
nodes = words.filter(lambda word: word != "gm")
labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z0-9]{1,5}){0,2}", fullmatch=True)
kinds = st.sampled_from(["lifelonglearningjob", "dataset"])
roots = st.sampled_from(["sedna", "a/b", "site-1/edge.x/sedna"])

BUILDERS = {
    TopicKind.DOWN: (Topics.down, ("node", "resource_kind", "namespace", "name")),
    TopicKind.DOWN_ACK: (Topics.down_ack, ("node",)),
    TopicKind.UP: (Topics.up, ("node", "resource_kind", "namespace", "name")),
    TopicKind.WORKER_INFO: (Topics.worker_info, ("node", "worker")),
    TopicKind.WORKER_DONE: (Topics.worker_done, ("node", "worker")),
    TopicKind.TICK: (Topics.tick, ("node",)),
    TopicKind.STATUS: (Topics.status, ("node",)),
    TopicKind.LINK: (Topics.link, ("node",)),
    TopicKind.OUTBOX: (Topics.outbox, ("node",)),
    TopicKind.STATE_JOB: (Topics.state_job, ("node", "namespace", "name")),
    TopicKind.STATE_MODEL: (Topics.state_model, ("node", "namespace", "name")),
    TopicKind.STATE_DATASET: (Topics.state_dataset, ("node", "namespace", "name")),
    TopicKind.STATE_HEAD: (Topics.state_head, ("node", "namespace", "name")),
    TopicKind.EVENT_JOB: (Topics.event_job, ("node", "namespace", "name")),
    TopicKind.EVENT_DATASET: (Topics.event_dataset, ("node", "namespace", "name")),
    TopicKind.ERRORS: (Topics.errors, ("node",)),
    TopicKind.ASK: (Topics.ask, ("node", "verb")),
    TopicKind.ANSWER: (Topics.answer, ("node", "asker")),
    TopicKind.APPLY: (Topics.apply, ("request",)),
    TopicKind.WORK: (Topics.work, ("node", "worker")),
}
VALUES = {"node": nodes, "resource_kind": kinds, "namespace": labels, "name": names}


@st.composite
def built(draw: st.DrawFn) -> tuple[Topics, str, ParsedTopic]:
    topics = Topics(draw(roots))
    kind = draw(st.sampled_from(TopicKind))
    builder, fields = BUILDERS[kind]
    values = {field: draw(VALUES.get(field, words)) for field in fields}
    return topics, builder(topics, **values), ParsedTopic(kind, **values)


@given(built())
def test_what_is_built_parses_to_what_it_was_built_from(case):
    topics, topic, parsed = case
    assert topics.parse(topic) == parsed
    assert len(topic.encode()) < 65536


@pytest.mark.parametrize("kind", TopicKind)
def test_every_kind_of_topic_can_be_built(kind):
    assert kind in BUILDERS


def test_topics_are_those_of_the_contract():
    topics = Topics()
    assert topics.down("edge1", "dataset", "default", "ds1") == "sedna/down/edge1/dataset/default/ds1"
    assert topics.down_ack("edge1") == "sedna/down/edge1/ack"
    assert topics.worker_done("edge1", "w1") == "sedna/worker/edge1/w1/done"
    assert topics.state_head("edge1", "default", "job1") == "sedna/state/edge1/heads/default/job1"
    assert topics.event_dataset("edge1", "default", "ds1") == "sedna/events/edge1/datasets/default/ds1"
    assert topics.answer("gm", "me") == "sedna/answer/gm/me"
    assert topics.apply("r1") == "sedna/apply/r1"


@given(st.text(max_size=40))
def test_a_topic_from_anywhere_parses_or_is_refused_with_code_topic(text):
    topics = Topics()
    for topic in (text, f"sedna/{text}", f"sedna/down/edge1/dataset/default/{text}", f"sedna/tick/{text}"):
        try:
            parsed = topics.parse(topic)
        except RefusedError as refusal:
            outcome = (refusal.code, str(refusal).isprintable())
        else:
            builder, fields = BUILDERS[parsed.kind]
            outcome = builder(topics, **{field: getattr(parsed, field) for field in fields})
        assert outcome in (("topic", True), topic)


@pytest.mark.parametrize(
    "node", ["", "+", "#", "a/b", "a b", "nö", "x" * 65, "gm", "$SYS", "edge\n1", "edge1\n", "edge\x00"]
)
def test_a_hostile_node_name_is_refused(node):
    with pytest.raises(RefusedError) as refusal:
        Topics().tick(node)
    assert refusal.value.code == "topic"
    for subscriptions in (Topics().lc_subscriptions, Topics().agent_subscriptions, Topics().state_filter):
        with pytest.raises(RefusedError):
            subscriptions(node)


@pytest.mark.parametrize("name", ["", "Job1", "job_1", "-job", "job-", "a..b", "+", "a/b", "x" * 254, "job\n"])
def test_a_name_that_is_not_rfc_1123_is_refused(name):
    with pytest.raises(RefusedError):
        Topics().state_job("edge1", "default", name)
    with pytest.raises(RefusedError):
        Topics().parse(f"sedna/down/edge1/dataset/default/{name}")


@pytest.mark.parametrize(
    "topic",
    [
        "sedna",
        "sedna/",
        "sedna/down/edge1",
        "sedna/down/gm/dataset/default/ds1",
        "sedna/worker/edge1/w1/other",
        "sedna/state/edge1/jobs/default",
        "sedna/tick/edge1/",
        "/sedna/tick/edge1",
        "Sedna/tick/edge1",
        "sedna2/tick/edge1",
        "$SYS/broker/uptime",
    ],
)
def test_what_the_contract_does_not_name_is_refused(topic):
    with pytest.raises(RefusedError) as refusal:
        Topics().parse(topic)
    assert refusal.value.code == "topic"


@pytest.mark.parametrize("kind", ["pod", "Dataset", "federatedlearningjob", "+", ""])
def test_a_kind_that_is_not_known_is_refused_as_such(kind):
    with pytest.raises(RefusedError, match="is not one of") as refusal:
        Topics().parse(f"sedna/down/edge1/{kind}/default/x")
    assert refusal.value.code == "kind"


def test_a_refused_topic_is_shown_escaped_and_cut():
    with pytest.raises(RefusedError) as refusal:
        Topics().parse("sedna/tick/\x1b[31m" + "x" * 5000)
    assert "\x1b" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("root", ["", "/a", "a/", "a//b", "$a", "a/+", "#", "ä", "a b", "a\n", "/".join("a" * 9)])
def test_a_root_that_opens_foreign_topics_is_a_usage_error(root):
    with pytest.raises(UsageError):
        Topics(root)


def test_subscriptions_cover_what_the_roles_must_hear():
    topics = Topics("a/b")
    assert topics.lc_subscriptions("edge1") == (
        "a/b/down/edge1/#",
        "a/b/worker/edge1/+/info",
        "a/b/tick/edge1",
        "a/b/ask/edge1/#",
    )
    assert "a/b/up/#" in topics.gm_subscriptions()
    assert topics.agent_subscriptions("edge1") == ("a/b/work/edge1/+", "a/b/worker/edge1/+/done")
    assert topics.heads_filter("edge1") == "a/b/state/edge1/heads/+/+"
    assert topics.events_filter() == "a/b/events/+/+/+/+"
    assert topics.events_filter("edge1", "default", "job1") == "a/b/events/edge1/+/default/job1"
