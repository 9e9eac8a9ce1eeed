"""Two brokers die; some groups lose their coordinator, and others go on.

A group lives on one partition of __consumer_offsets, and the leader of
that partition is its coordinator. When all replicas of a partition are
gone, the groups on it hear error 15 (COORDINATOR_NOT_AVAILABLE) from every
broker that they ask, for as long as the partition has no leader. Groups on
other partitions notice little: their coordinator moves, and their offsets
are still there. A group with another name may be well: the name chooses
the partition. That is why renaming a stricken group seems to help.
"""

from dataclasses import dataclass

from kelpie.assignors import assignment, subscription
from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.client import RawClient
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.wire.api.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NAME = "coordinator-outage"
PERSONAS = ("0.9", "2.8", "3.9", "4.3")

_OFFSETS_TOPIC = "__consumer_offsets"
_TOPIC = "orders"
_PARTITIONS = 50
_SESSION_MS = 1_800_000
"""Long, so that nobody expires while somebody looks at the outage."""
_RECORDS = 200


@dataclass(slots=True)
class _Group:
    name: str
    partition: int
    replicas: tuple[int, ...]
    is_hit: bool
    offset: int = 0
    generation: int = -1
    member: str = ""


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(
        3,
        replication=2,
        offsets_partitions=_PARTITIONS,
        config={"group.initial.rebalance.delay.ms": 0, "group.max.session.timeout.ms": _SESSION_MS},
        first_node_id=0,
    )
    stage.step(
        f"Kafka {stage.persona}, brokers 0, 1 and 2; {_OFFSETS_TOPIC} has {_PARTITIONS} partitions "
        "with 2 replicas each."
    )
    compacted = {"cleanup.policy": "compact", "segment.bytes": 104_857_600}
    cluster.create_topic(_OFFSETS_TOPIC, config=compacted, assignment=_spread(_PARTITIONS, first=1))
    cluster.create_topic(_TOPIC, assignment={0: (2, 1, 0)})
    await produce(stage, cluster, _TOPIC, _RECORDS)
    clients = [await stage.client("scenario", address) for address in cluster.bootstrap_servers.split(",")]
    survivor = clients[0]

    await stage.until(lambda: _find(survivor, "warmup"), lambda found: found.error_code == 0)
    replicas = await _replicas(survivor)
    groups = _choose(replicas, dead={1, 2})
    hit = sorted({partition for partition, own in replicas.items() if set(own) <= {1, 2}})
    stage.say(f"Both replicas on brokers 1 and 2: {len(hit)} of {_PARTITIONS} partitions.")

    stage.step("Four groups join, and commit an offset each.")
    for group in groups:
        await _join_and_commit(stage, clients, group)
    await stage.calm(cluster)

    stage.step("Brokers 1 and 2 die.")
    await cluster.kill(1)
    await cluster.kill(2)

    stage.step("Each group looks for its coordinator, at the broker that is left.")
    for group in groups:
        await _look_for_coordinator(stage, survivor, group)
    # The other groups hang on the broker that is left (KLP106).
    hit_groups = [group.name for group in groups if group.is_hit]
    await stage.incident(cluster, finds={"KLP101": hit_groups, "KLP106": []})

    stage.step("The healthy groups go on. A stricken one is well under another name.")
    for group in groups:
        if not group.is_hit:
            await _go_on(stage, survivor, group)
    await _rename(stage, survivor, next(group for group in groups if group.is_hit), replicas)

    stage.step("Brokers 1 and 2 come back.")
    await cluster.start(1)
    await cluster.start(2)
    for group in groups:
        await _recover(stage, clients, group)


def _spread(partitions: int, first: int) -> dict[int, tuple[int, int]]:
    """Two replicas on three brokers, as Kafka up to 3.9 spread them (AdminUtils.assignReplicasToBrokers).

    Kafka draws where to begin. These beginnings are those of a cluster of 0.9.0.1 whose outage was recorded,
    so that the same groups are hit here as there.
    """
    rows = {}
    for partition in range(partitions):
        leader = (partition + first) % 3
        shift = 1 + (first + partition // 3) % 2
        rows[partition] = (leader, (leader + shift) % 3)
    return rows


def _choose(replicas: dict[int, tuple[int, ...]], dead: set[int]) -> list[_Group]:
    """Two groups whose partition loses all replicas, one whose coordinator stays, and one whose moves."""
    chosen: dict[str, _Group] = {}
    for number in range(10_000):
        name = f"billing-{number}"
        partition = partition_for(name, _PARTITIONS)
        own = replicas[partition]
        if set(own) <= dead:
            kind = "hit" if "hit" not in chosen else "hit too"
        else:
            kind = "moves" if own[0] in dead else "stays"
        chosen.setdefault(kind, _Group(name, partition, own, set(own) <= dead, 100 + number))
        if len(chosen) == 4:
            break
    return sorted(chosen.values(), key=lambda group: (group.is_hit, group.name))


async def _join_and_commit(stage: Stage, clients: list[RawClient], group: _Group) -> None:
    found = await stage.until(lambda: _find(clients[0], group.name), lambda answer: answer.error_code == 0)
    coordinator = clients[found.node_id]
    joined = await stage.until(
        lambda: coordinator.ask(
            JoinGroupRequest(
                group_id=group.name,
                session_timeout_ms=_SESSION_MS,
                member_id=group.member,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequestProtocol(name="range", metadata=subscription("range", [_TOPIC], (), -1))
                ],
            ),
            0,
        ),
        lambda answer: answer.error_code == 0,
    )
    group.generation, group.member = joined.generation_id, joined.member_id
    synced = await coordinator.ask(
        SyncGroupRequest(
            group_id=group.name,
            generation_id=group.generation,
            member_id=group.member,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=group.member, assignment=assignment([TopicPartition(_TOPIC, 0)])
                )
            ],
        ),
        0,
    )
    committed = await _commit(coordinator, group)
    stage.expect(
        joined.error_code == synced.error_code == committed == 0,
        f"{group.name} (partition {group.partition}, replicas {_listed(group.replicas)}): coordinator is "
        f"broker {found.node_id}, offset {group.offset} committed",
    )


async def _look_for_coordinator(stage: Stage, client: RawClient, group: _Group) -> None:
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE

    def settled(answer: FindCoordinatorResponse) -> bool:
        return answer.error_code == unavailable if group.is_hit else answer.node_id == 0

    found = await stage.until(lambda: _find(client, group.name), settled)
    heard = (
        f"coordinator is broker {found.node_id}"
        if found.error_code == 0
        else f"error_code={found.error_code}, node_id={found.node_id}, host={found.host!r}, port={found.port}"
    )
    stage.expect(settled(found), f"{group.name}: {heard}")


async def _go_on(stage: Stage, coordinator: RawClient, group: _Group) -> None:
    beat = await stage.until(
        lambda: coordinator.ask(
            HeartbeatRequest(group_id=group.name, generation_id=group.generation, member_id=group.member),
            0,
        ),
        lambda answer: answer.error_code == 0,
    )
    offset = await _offset(coordinator, group)
    stage.expect(
        beat.error_code == 0 and offset == group.offset,
        f"{group.name}: heartbeat {beat.error_code}, its offset is {offset}",
    )
    group.offset += 1
    committed = await _commit(coordinator, group)
    stage.expect(committed == 0, f"{group.name}: commits {group.offset}: {committed}")


async def _rename(
    stage: Stage, client: RawClient, group: _Group, replicas: dict[int, tuple[int, ...]]
) -> None:
    """As the people of the incident found out: under another name the same consumers are well."""
    names = (f"{group.name}-v{number}" for number in range(2, 1000))
    renamed = next(name for name in names if 0 in replicas[partition_for(name, _PARTITIONS)])
    found = await stage.until(lambda: _find(client, renamed), lambda answer: answer.error_code == 0)
    stage.expect(
        found.error_code == 0,
        f"{group.name} renamed to {renamed} is on partition {partition_for(renamed, _PARTITIONS)}: "
        f"coordinator is broker {found.node_id}",
    )


async def _recover(stage: Stage, clients: list[RawClient], group: _Group) -> None:
    async def offset() -> int:
        try:
            found = await _find(clients[0], group.name)
            return await _offset(clients[found.node_id], group) if found.error_code == 0 else -1
        except OSError:
            return -1

    seen = await stage.until(offset, lambda at: at == group.offset)
    stage.expect(seen == group.offset, f"{group.name}: its offset is {seen}")


async def _find(client: RawClient, group: str) -> FindCoordinatorResponse:
    found: FindCoordinatorResponse = await client.ask(FindCoordinatorRequest(key=group), 0)
    return found


async def _replicas(client: RawClient) -> dict[int, tuple[int, ...]]:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=_OFFSETS_TOPIC)])
    metadata = await client.ask(asked, 0)
    return {own.partition_index: tuple(own.replica_nodes) for own in metadata.topics[0].partitions}


async def _commit(coordinator: RawClient, group: _Group) -> int:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=group.offset, committed_metadata=""
    )
    answer = await coordinator.ask(
        OffsetCommitRequest(
            group_id=group.name,
            generation_id_or_member_epoch=group.generation,
            member_id=group.member,
            topics=[OffsetCommitRequestTopic(name=_TOPIC, partitions=[partition])],
        ),
        2,
    )
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def _offset(coordinator: RawClient, group: _Group) -> int:
    asked = OffsetFetchRequestTopic(name=_TOPIC, partition_indexes=[0])
    answer = await coordinator.ask(OffsetFetchRequest(group_id=group.name, topics=[asked]), 1)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def _listed(replicas: tuple[int, ...]) -> str:
    return " and ".join(map(str, replicas))
