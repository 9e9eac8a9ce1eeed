"""What clients send, in few words, and what they make of the answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kelpie.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kelpie.wire.consumer_protocol import Assignment, encode, rows_of
from kelpie.wire.records import Record, read_all_records, write_batch, write_message_set
from tests.broker.driver import PARKED, START, Cluster, Sent

ALL, LEADER, NONE = -1, 1, 0


def batch(*values: bytes, timestamp: int = START, producer: tuple[int, int, int] | None = None) -> bytes:
    """One batch of magic 2. `producer` (id, epoch, sequence) makes it transactional."""
    records = [Record(index, timestamp, key=None, value=value) for index, value in enumerate(values)]
    if producer is None:
        return write_batch(records)
    return write_batch(
        records,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=True,
    )


def send_produce(
    cluster: Cluster,
    partition: TopicPartition,
    *values: bytes,
    acks: int = ALL,
    node: int | None = None,
    version: int = 9,
    timeout_ms: int = 30_000,
    records: bytes | None = None,
    client_id: str = "client",
    transactional_id: str | None = None,
) -> Sent:
    if records is None:
        records = batch(*values, timestamp=cluster.now)
        if cluster.persona.magic == 0:
            version = min(version, 1)
            plain = [Record(index, -1, key=None, value=value) for index, value in enumerate(values)]
            records = write_message_set(plain, magic=0)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                name=partition.topic,
                partition_data=[PartitionProduceData(index=partition.partition, records=records)],
            )
        ],
    )
    return cluster.send(
        cluster.leader(partition) if node is None else node, request, version, client_id=client_id
    )


def produce(cluster: Cluster, partition: TopicPartition, *values: bytes, **more: Any) -> Any:
    """The partition's answer, or PARKED."""
    sent = send_produce(cluster, partition, *values, **more)
    return PARKED if sent.waits else part(sent.answer)


def part(response: Any) -> Any:
    """The one partition of an answer that is about one."""
    topics = getattr(response, "responses", None) or response.topics
    parts = getattr(topics[0], "partition_responses", None) or topics[0].partitions
    return parts[0]


def produced(cluster: Cluster, partition: TopicPartition, *values: bytes, **more: Any) -> int:
    """The offset of the first record."""
    answer = produce(cluster, partition, *values, **more)
    assert answer is not PARKED, "nobody acknowledges"
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return int(answer.base_offset)


def fetch_request(
    *partitions: tuple[TopicPartition, int],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 26,
    partition_max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, -1),
    epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic=it.topic,
                partitions=[
                    FetchPartition(
                        partition=it.partition,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=epoch,
                        last_fetched_epoch=last_fetched_epoch,
                    )
                ],
            )
            for it, offset in partitions
        ],
    )


def fetch(
    cluster: Cluster,
    partition: TopicPartition,
    offset: int = 0,
    *,
    node: int | None = None,
    version: int = 12,
    **more: Any,
) -> Any:
    """The partition's answer, or PARKED."""
    if cluster.persona.magic == 0:
        version = min(version, 1)
    request = fetch_request((partition, offset), **more)
    answer = cluster.ask(cluster.leader(partition) if node is None else node, request, version)
    return answer if answer is PARKED else part(answer)


def values(data: Any) -> list[bytes | None]:
    """What an application gets from a fetched partition, whatever the transactions."""
    return [record.value for record in read_all_records(data.records or b"")]


def read(cluster: Cluster, partition: TopicPartition, offset: int = 0, **more: Any) -> list[bytes | None]:
    answer = fetch(cluster, partition, offset, **more)
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    return values(answer)


def list_offset(
    cluster: Cluster,
    partition: TopicPartition,
    timestamp: int,
    *,
    node: int | None = None,
    version: int = 6,
    isolation_level: int = 0,
    epoch: int = -1,
    most: int = 1,
) -> Any:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=partition.topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=partition.partition,
                        timestamp=timestamp,
                        current_leader_epoch=epoch,
                        max_num_offsets=most,
                    )
                ],
            )
        ],
    )
    return part(cluster.ask(cluster.leader(partition) if node is None else node, request, version))


def metadata(
    cluster: Cluster,
    node: int,
    *topics: str,
    version: int | None = None,
    everything: bool = False,
    create: bool = True,
    ids: tuple[bytes, ...] = (),
    listener: str = "PLAINTEXT",
) -> Any:
    asked: list[MetadataRequestTopic] | None = [MetadataRequestTopic(name=name) for name in topics]
    assert asked is not None
    asked += [MetadataRequestTopic(topic_id=it, name=None) for it in ids]
    request = MetadataRequest(
        topics=(None if version != 0 else []) if everything else asked, allow_auto_topic_creation=create
    )
    return cluster.ask(node, request, version, listener=listener)


def find(
    cluster: Cluster, node: int, *keys: str, version: int | None = None, kind: int = 0, **more: Any
) -> Any:
    """Code, node id, host and port; a list of them where several keys can be asked at once."""
    latest = cluster.latest(10) if version is None else version
    if latest >= 4:
        answer = cluster.ask(
            node, FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys)), latest, **more
        )
        found = [(it.error_code, it.node_id, it.host, it.port) for it in answer.coordinators]
        return found if len(keys) > 1 else found[0]
    answer = cluster.ask(node, FindCoordinatorRequest(key=keys[0], key_type=kind), latest, **more)
    return answer.error_code, answer.node_id, answer.host, answer.port


def coordinator(cluster: Cluster, group: str, *, kind: int = 0) -> int:
    """The node that coordinates a group or a transactional id; its topic is created if need be."""
    node = min(filter(cluster.fabric.is_alive, cluster.fabric.brokers))
    find(cluster, node, group, kind=kind)
    code, found, _, _ = find(cluster, node, group, kind=kind)
    assert code == ErrorCode.NONE, ErrorCode(code)
    return int(found)


def send_commit(
    cluster: Cluster,
    group: str,
    partition: TopicPartition,
    offset: int,
    *,
    node: int,
    version: int = 2,
    generation: int = -1,
    member: str = "",
    note: str = "",
) -> Sent:
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[
            OffsetCommitRequestTopic(
                name=partition.topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition, committed_offset=offset, committed_metadata=note
                    )
                ],
            )
        ],
    )
    return cluster.send(node, request, version)


def commit(cluster: Cluster, group: str, partition: TopicPartition, offset: int, **more: Any) -> Any:
    """The error code, or PARKED."""
    sent = send_commit(cluster, group, partition, offset, **more)
    return PARKED if sent.waits else ErrorCode(part(sent.answer).error_code)


def committed(
    cluster: Cluster,
    group: str,
    partition: TopicPartition,
    *,
    node: int,
    version: int = 1,
    stable: bool = False,
) -> Any:
    """The offset, or the error code where there is one."""
    if version >= 8:
        topics = [OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.partition])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=stable
        )
    else:
        request = OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.partition])],
            require_stable=stable,
        )
    answer = cluster.ask(node, request, version)
    whole = answer.groups[0] if version >= 8 else answer
    if whole.error_code:
        return ErrorCode(whole.error_code)
    found = whole.topics[0].partitions[0]
    return ErrorCode(found.error_code) if found.error_code else found.committed_offset


def join(
    cluster: Cluster,
    node: int,
    group: str,
    member: str = "",
    *,
    version: int = 3,
    instance: str | None = None,
) -> Sent:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    return cluster.send(node, request, 0 if cluster.persona.name == "0.9" else version)


def sync(
    cluster: Cluster,
    node: int,
    group: str,
    generation: int,
    member: str,
    *,
    assignments: Mapping[str, Iterable[TopicPartition]] | None = None,
) -> Sent:
    """The leader's, with assignments, or a follower's."""
    request = SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        assignments=[
            SyncGroupRequestAssignment(
                member_id=one, assignment=encode(Assignment(assigned_partitions=rows_of(partitions)), 0)
            )
            for one, partitions in (assignments or {}).items()
        ],
    )
    return cluster.send(node, request, 3)


def heartbeat(cluster: Cluster, node: int, group: str, generation: int, member: str) -> ErrorCode:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
    return ErrorCode(cluster.ask(node, request, 0).error_code)
