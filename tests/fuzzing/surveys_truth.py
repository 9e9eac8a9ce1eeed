"""What honest brokers would answer: the lab's own, with a clock that stands still, so that nothing expires.

Answers are kept by request. So a survey costs little, and is the same every time.
"""

from functools import cache, lru_cache

from kelpie.broker.call import Call
from kelpie.broker.personas import RELEASES
from kelpie.model.names import TopicPartition
from kelpie.wire.framing import (
    UnsupportedVersion,
    decode_request,
    encode_response,
)
from kelpie.wire.malformed import Malformed
from tests.broker.clients import commit, coordinator, join, produced, sync
from tests.broker.driver import Cluster
from tests.broker.test_fetch import Producer

NODES = (1, 2, 3)
GROUPS = ("alpha", "beta", "gamma", "delta", "at-work")
TOPICS = ("orders", "payments")
STATES = ("healthy", "one broker dead", "no offsets topic")


@cache
def cluster_of(release: str, state: str) -> Cluster:
    """Three brokers with topics, commits, a group with a member, and an open transaction."""
    cluster = Cluster(persona=release, settings={"group.initial.rebalance.delay.ms": "0"})
    orders = cluster.create("orders", 3)
    payments = cluster.create("payments", assignment={0: [3]})
    if state == "no offsets topic":
        return cluster
    for partition in (orders, TopicPartition("orders", 1), payments):
        produced(cluster, partition, b"a", b"b", b"c")
    for at, group in enumerate(GROUPS):
        node = coordinator(cluster, group)
        for partition in (orders, payments):
            commit(cluster, group, partition, at % 3, node=node, version=2)
    _put_to_work(cluster, "at-work", orders)
    if release != "0.9":
        Producer(cluster, orders).send(b"never ended")
    if state == "one broker dead":
        cluster.lose(3)
    return cluster


def _put_to_work(cluster: Cluster, group: str, partition: TopicPartition) -> None:
    node = coordinator(cluster, group)
    joining = join(cluster, node, group, version=2)
    cluster.advance(100)
    joined = joining.answer
    sync(
        cluster,
        node,
        group,
        joined.generation_id,
        joined.member_id,
        assignments={joined.member_id: [partition]},
    )


@lru_cache(maxsize=20_000)
def true_answer(kind: tuple[str, str], node: int, api: tuple[int, int], body: bytes) -> bytes | None:
    """The frame behind its correlation id; None where an honest broker would give no answer.

    `kind` is a release and a state, `api` a key and a version; `body` is the frame of the request behind its
    header's correlation id.
    """
    cluster = cluster_of(*kind)
    key, version = api
    raw = key.to_bytes(2) + version.to_bytes(2) + bytes(4) + body
    answers: list[bytes] = []
    try:
        if not cluster.persona.serves(key, version):
            return None
        header, message = decode_request(raw)
    except (Malformed, UnsupportedVersion):
        return None
    call = Call(
        header,
        message,
        "/127.0.0.1",
        lambda response: answers.append(encode_response(key, version, 0, response)[8:]),
        lambda: None,
    )
    cluster.fabric.handle(node, call, cluster.now)
    return answers[0] if answers else None


def releases() -> tuple[str, ...]:
    return RELEASES
