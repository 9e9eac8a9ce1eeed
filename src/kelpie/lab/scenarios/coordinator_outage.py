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

from kelpie.errors import ErrorCode
from kelpie.lab.cluster import Cluster
from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.application import Application, CommitPolicy
from kelpie.lab.scenarios.coordinated_groups import OFFSETS_TOPIC, lookup
from kelpie.lab.scenarios.producing import produce
from kelpie.lab.scenarios.stage import Stage
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.questions.find_coordinator import FoundCoordinator
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.offset_fetch import AskCommitted

NAME = "coordinator-outage"
PERSONAS = ("0.9", "2.8", "3.9", "4.3")

_TOPIC = "orders"
_PARTITION = TopicPartition(_TOPIC, 0)
_PARTITIONS = 50
_SESSION_MS = 1_800_000
"""Long, so that no session expires while an observer looks at the outage."""
_RECORDS = 200
_SURVIVOR = 0
"""The broker that stays."""


@dataclass(slots=True)
class _OutageGroup:
    name: str
    partition: int
    replicas: tuple[int, ...]
    is_hit: bool
    offset: int
    application: Application | None = None


async def run(stage: Stage) -> None:
    cluster = await stage.cluster(
        3,
        replication=2,
        offsets_partitions=_PARTITIONS,
        config={"group.initial.rebalance.delay.ms": 0, "group.max.session.timeout.ms": _SESSION_MS},
        first_node_id=0,
    )
    stage.step(
        f"Kafka {stage.persona}, brokers 0, 1 and 2; {OFFSETS_TOPIC} has {_PARTITIONS} partitions "
        "with 2 replicas each."
    )
    compacted = {"cleanup.policy": "compact", "segment.bytes": 104_857_600}
    cluster.create_topic(OFFSETS_TOPIC, config=compacted, assignment=_spread(_PARTITIONS, first=1))
    cluster.create_topic(_TOPIC, assignment={0: (2, 1, 0)})
    await produce(stage, cluster, _TOPIC, _RECORDS)

    await stage.until(lambda: _find(stage, cluster, "warmup"), lambda answer: answer.error == 0)
    replicas = await _replicas(stage, cluster)
    groups = _choose(replicas, dead={1, 2})
    hit = [partition for partition, nodes in replicas.items() if set(nodes) <= {1, 2}]
    stage.say(f"Both replicas on brokers 1 and 2: {len(hit)} of {_PARTITIONS} partitions.")

    stage.step("Four groups join, and commit an offset each.")
    for group in groups:
        await _join_and_commit(stage, cluster, group)
    await stage.calm(cluster)

    stage.step("Brokers 1 and 2 die.")
    await cluster.kill(1)
    await cluster.kill(2)

    stage.step("Each group looks for its coordinator, at the broker that is left.")
    for group in groups:
        await _look_for_coordinator(stage, cluster, group)
    # The other groups depend on the broker that is left (KLP106).
    hit_groups = [group.name for group in groups if group.is_hit]
    await stage.incident(cluster, finds={"KLP101": hit_groups, "KLP106": []})

    stage.step("The healthy groups go on. A stricken one is well under another name.")
    for group in groups:
        if not group.is_hit:
            await _go_on(stage, cluster, group)
    await _rename(stage, cluster, next(group for group in groups if group.is_hit), replicas)

    stage.step("Brokers 1 and 2 come back.")
    await cluster.start(1)
    await cluster.start(2)
    for group in groups:
        await _recover(stage, cluster, group)


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


def _choose(replicas: dict[int, tuple[int, ...]], dead: set[int]) -> list[_OutageGroup]:
    """Two groups whose partition loses all replicas, one whose coordinator stays, and one whose moves."""
    chosen: dict[str, _OutageGroup] = {}
    for number in range(10_000):
        name = f"billing-{number}"
        partition = partition_for(name, _PARTITIONS)
        nodes = replicas[partition]
        is_hit = set(nodes) <= dead
        if is_hit:
            kind = "hit" if "hit" not in chosen else "hit too"
        else:
            kind = "moves" if nodes[0] in dead else "stays"
        chosen.setdefault(kind, _OutageGroup(name, partition, nodes, is_hit, 100 + number))
        if len(chosen) == 4:
            break
    return sorted(chosen.values(), key=lambda group: (group.is_hit, group.name))


async def _join_and_commit(stage: Stage, cluster: Cluster, group: _OutageGroup) -> None:
    application = group.application = Application(
        stage,
        cluster,
        group.name,
        [_TOPIC],
        commits=CommitPolicy.ON_DEMAND,
        session_timeout_ms=_SESSION_MS,
        heartbeat_interval_ms=3_000,
        max_poll_interval_ms=_SESSION_MS,
    )
    application.start()
    await application.until_at(_PARTITION, _RECORDS)
    committed = await application.commit(group.offset)
    replicas = " and ".join(map(str, group.replicas))
    stage.expect(
        application.is_joined and committed == 0,
        f"{group.name} (partition {group.partition}, replicas {replicas}): coordinator is "
        f"broker {application.coordinator}, offset {group.offset} committed",
    )


async def _look_for_coordinator(stage: Stage, cluster: Cluster, group: _OutageGroup) -> None:
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE

    def is_settled(answer: FoundCoordinator) -> bool:
        return answer.error == unavailable if group.is_hit else answer.node_id == _SURVIVOR

    answer = await stage.until(lambda: _find(stage, cluster, group.name), is_settled)
    text = (
        f"coordinator is broker {answer.node_id}"
        if answer.error == 0
        else f"error_code={answer.error}, node_id={answer.node_id}, host={answer.host!r}, port={answer.port}"
    )
    stage.expect(is_settled(answer), f"{group.name}: {text}")


async def _go_on(stage: Stage, cluster: Cluster, group: _OutageGroup) -> None:
    application = group.application
    assert application is not None
    heartbeat = AskHeartbeat(group.name, application.generation, application.member_id, None)
    async with await stage.connect_to(cluster, _SURVIVOR) as connection:
        error = await stage.until(lambda: connection.put(heartbeat), lambda error: error == 0)
    offset = await _offset(stage, cluster, _SURVIVOR, group)
    stage.expect(
        error == 0 and offset == group.offset, f"{group.name}: heartbeat {error}, its offset is {offset}"
    )
    group.offset += 1
    committed = await application.commit(group.offset)
    stage.expect(committed == 0, f"{group.name}: commits {group.offset}: {committed}")


async def _rename(
    stage: Stage, cluster: Cluster, group: _OutageGroup, replicas: dict[int, tuple[int, ...]]
) -> None:
    """As the people of the incident found out: under another name the same consumers are well."""
    names = (f"{group.name}-v{number}" for number in range(2, 1000))
    renamed = next(name for name in names if _SURVIVOR in replicas[partition_for(name, _PARTITIONS)])
    answer = await stage.until(lambda: _find(stage, cluster, renamed), lambda answer: answer.error == 0)
    stage.expect(
        answer.error == 0,
        f"{group.name} renamed to {renamed} is on partition {partition_for(renamed, _PARTITIONS)}: "
        f"coordinator is broker {answer.node_id}",
    )


async def _recover(stage: Stage, cluster: Cluster, group: _OutageGroup) -> None:
    async def offset_now() -> int:
        answer = await _find(stage, cluster, group.name)
        return await _offset(stage, cluster, answer.node_id, group) if answer.error == 0 else -1

    offset = await stage.until(offset_now, lambda offset: offset == group.offset)
    stage.expect(offset == group.offset, f"{group.name}: its offset is {offset}")


async def _find(stage: Stage, cluster: Cluster, group: str) -> FoundCoordinator:
    return await lookup(stage, cluster, _SURVIVOR, group)


async def _replicas(stage: Stage, cluster: Cluster) -> dict[int, tuple[int, ...]]:
    async with administering.admin(stage, cluster) as admin:
        return {view.partition: view.replicas for view in await admin.topics([OFFSETS_TOPIC])}


async def _offset(stage: Stage, cluster: Cluster, node_id: int, group: _OutageGroup) -> int:
    """The committed offset; −1: the coordinator does not tell."""
    async with await stage.connect_to(cluster, node_id) as connection:
        offsets = await connection.put(AskCommitted(group.name, (_PARTITION,)))
    return -1 if offsets.error else offsets.partitions[_PARTITION].offset
