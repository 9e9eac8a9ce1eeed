"""Fetch sessions (KIP-227): what is remembered, what is told, and when a session ends."""

import pytest

from kelpie.broker.fetch_sessions import UNTOUCHED_MS
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.fetch import FetchRequest, ForgottenTopic
from tests.broker.clients import fetch_request, produced, values
from tests.broker.driver import Cluster
from tests.broker.test_fetch import by_id

VERSION = 12


def opened(cluster: Cluster, *partitions: tuple[TopicPartition, int]) -> int:
    answer = cluster.ask(1, fetch_request(*partitions, session=(0, 0)), VERSION)
    assert answer.session_id > 0
    return int(answer.session_id)


def again(
    cluster: Cluster,
    session: int,
    epoch: int,
    *partitions: tuple[TopicPartition, int],
    forgotten: tuple[TopicPartition, ...] = (),
    version: int = VERSION,
    max_bytes: int = 1 << 26,
) -> dict[str, list[bytes | None]]:
    """Each topic that the answer names, with what it brings."""
    request = fetch_request(*partitions, session=(session, epoch), max_bytes=max_bytes)
    request.forgotten_topics_data = [
        ForgottenTopic(topic=it.topic, partitions=[it.partition]) for it in forgotten
    ]
    answer = cluster.ask(1, request, version)
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return {it.topic: values(it.partitions[0]) for it in answer.responses}


def test_later_answers_hold_only_what_is_new() -> None:
    """Silent partitions cost nothing: that is what sessions are for."""
    cluster = Cluster()
    one, other = cluster.create("one"), cluster.create("other")
    session = opened(cluster, (one, 0), (other, 0))
    assert again(cluster, session, 1) == {}
    produced(cluster, other, b"a")
    assert again(cluster, session, 2) == {"other": [b"a"]}
    assert again(cluster, session, 3, (other, 1)) == {}


def test_high_watermark_that_moved_is_news() -> None:
    """Lag is told even to a consumer that is paused in front of the records."""
    cluster = Cluster()
    partition = cluster.create()
    session = opened(cluster, (partition, 0))
    produced(cluster, partition, b"a")
    assert again(cluster, session, 1, (partition, 1)) == {"orders": []}
    assert again(cluster, session, 2) == {}


def test_errors_are_told_every_time() -> None:
    """An error is news until it is over, and so is its end."""
    cluster = Cluster()
    partition = cluster.create()
    session = opened(cluster, (partition, 0))
    for epoch in (1, 2):
        answer = cluster.ask(1, fetch_request((partition, 9), session=(session, epoch)), VERSION)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert again(cluster, session, 3, (partition, 0)) == {"orders": []}


def test_partitions_come_and_go() -> None:
    """A request names what is added and what is forgotten; the rest stays."""
    cluster = Cluster()
    one, other = cluster.create("one"), cluster.create("other")
    session = opened(cluster, (one, 0))
    produced(cluster, one, b"a")
    produced(cluster, other, b"b")
    assert again(cluster, session, 1, (other, 0), forgotten=(one,)) == {"other": [b"b"]}
    assert again(cluster, session, 2) == {"other": [b"b"]}


def test_session_that_is_left_empty_ends() -> None:
    """Kafka answers such a request without a session, and does not know it afterwards."""
    cluster = Cluster()
    partition = cluster.create()
    session = opened(cluster, (partition, 0))
    request = fetch_request(session=(session, 1))
    request.forgotten_topics_data = [ForgottenTopic(topic="orders", partitions=[0])]
    answer = cluster.ask(1, request, VERSION)
    assert (answer.error_code, answer.session_id, answer.responses) == (0, 0, [])
    assert failure(cluster, session, 2) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def failure(cluster: Cluster, session: int, epoch: int, version: int = VERSION) -> ErrorCode:
    answer = cluster.ask(1, fetch_request(session=(session, epoch)), version)
    assert (answer.session_id, answer.responses) == (0, [])
    return ErrorCode(answer.error_code)


def test_unknown_session_and_wrong_epoch() -> None:
    """The client then begins anew with a full request."""
    cluster = Cluster()
    session = opened(cluster, (cluster.create(), 0))
    assert failure(cluster, session + 1, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert failure(cluster, session, 2) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert again(cluster, session, 1) == {}
    assert failure(cluster, session, 1) == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_ids_and_names_do_not_mix() -> None:
    """A client that changes its version within a session (a rolling upgrade of brokers) must begin anew."""
    cluster = Cluster()
    session = opened(cluster, (cluster.create(), 0))
    assert failure(cluster, session, 1, version=13) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_unknown_id_is_read_once_the_topic_is_there() -> None:
    """Ids are looked up with every request: a broker may hear of a topic later than a client."""
    cluster = Cluster()
    partition = cluster.create()
    cluster.fabric.freeze_metadata(1)
    fresh = cluster.create("fresh")
    request = by_id(cluster, fresh)
    request.session_epoch = 0
    answer = cluster.ask(1, request, 13)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    cluster.fabric.thaw_metadata(1, cluster.now)
    more = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[], session_id=answer.session_id, session_epoch=1)
    answer = cluster.ask(1, more, 13)
    assert [it.partitions[0].error_code for it in answer.responses] == [ErrorCode.NONE]
    assert partition in cluster.fabric.broker(1).replicas


@pytest.mark.parametrize("epoch", [0, -1])
def test_full_request_ends_the_session_it_names(epoch: int) -> None:
    """Epoch 0 opens another one, −1 none."""
    cluster = Cluster()
    partition = cluster.create()
    session = opened(cluster, (partition, 0))
    answer = cluster.ask(1, fetch_request((partition, 0), session=(session, epoch)), VERSION)
    assert (answer.session_id == 0) == (epoch == -1)
    assert answer.session_id != session
    assert failure(cluster, session, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_partitions_take_turns() -> None:
    """Who got something goes to the end, so that one busy partition does not starve the others."""
    cluster = Cluster()
    one, other = cluster.create("one"), cluster.create("other")
    session = opened(cluster, (one, 0), (other, 0))
    for partition in (one, other):
        produced(cluster, partition, b"x" * 100)
    found = [again(cluster, session, epoch, max_bytes=10) for epoch in (1, 2, 3)]
    first = [next(name for name, got in it.items() if got) for it in found]
    assert first == ["one", "other", "one"]


def test_full_cache_keeps_sessions_that_are_in_use() -> None:
    """Whoever comes too late gets no session (id 0) and goes on with full requests."""
    cluster = Cluster(settings={"max.incremental.fetch.session.cache.slots": "1"})
    partition = cluster.create()
    session = opened(cluster, (partition, 0))
    late = cluster.ask(1, fetch_request((partition, 0), session=(0, 0)), VERSION)
    assert late.session_id == 0
    assert again(cluster, session, 1) == {}


def test_session_that_nobody_used_for_two_minutes_makes_room() -> None:
    """The least recently used one goes."""
    cluster = Cluster(settings={"max.incremental.fetch.session.cache.slots": "2"})
    partition = cluster.create()
    idle, busy = opened(cluster, (partition, 0)), opened(cluster, (partition, 0))
    cluster.advance(UNTOUCHED_MS + 1)
    again(cluster, busy, 1)
    opened(cluster, (partition, 0))
    assert failure(cluster, idle, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert again(cluster, busy, 2) == {}


def test_larger_session_takes_the_place_of_an_old_small_one() -> None:
    """It saves more; a small one does not drive out a large one."""
    cluster = Cluster(settings={"max.incremental.fetch.session.cache.slots": "1"})
    one, other = cluster.create("one"), cluster.create("other")
    small = opened(cluster, (one, 0))
    cluster.advance(UNTOUCHED_MS)
    again(cluster, small, 1)
    cluster.advance(1)
    assert cluster.ask(1, fetch_request((one, 0), session=(0, 0)), VERSION).session_id == 0
    opened(cluster, (one, 0), (other, 0))
    assert failure(cluster, small, 2) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_sessions_do_not_outlive_the_broker() -> None:
    """After a restart the id means nothing, even if others have sessions by then."""
    cluster = Cluster()
    partition = cluster.create()
    session = opened(cluster, (partition, 0))
    cluster.lose(1)
    cluster.start(1)
    opened(cluster, (partition, 0))
    assert failure(cluster, session, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
