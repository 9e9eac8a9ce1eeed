"""Changes that only the controller can make: elections of leaders, reassignments of replicas.

Brokers of a KRaft cluster forward such requests to the controller. With ZooKeeper the controller itself must
be asked.
"""

from collections.abc import Iterable, Mapping, Sequence

from kelpie.client.admin.asking import error_of
from kelpie.client.admin.rows import PartitionChange, Reassignment, Rows
from kelpie.client.client_errors import ClientError
from kelpie.client.nodes import Nodes
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.observations import CoordinatorAnswer
from kelpie.questions.question import by_topic
from kelpie.wire.api.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kelpie.wire.api.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kelpie.wire.api.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kelpie.wire.structs import TopicPartitionIndexes, TopicPartitions

LIMIT_S = 30.0
"""How long the controller may take to answer."""
_TIMEOUT_MS = int(LIMIT_S * 1000)
_PREFERRED, _UNCLEAN = 0, 1
_UNCLEAN_SINCE = 1


async def controller_of(nodes: Nodes) -> int:
    """The controller, if it can be reached; else a broker that may forward to it. Raises ClientError."""
    failure: ClientError | None = None
    for node in sorted(nodes.brokers, key=lambda node: node != nodes.controller_id):
        try:
            await nodes.connection(node)
        except ClientError as error:
            failure = failure or error
        else:
            return node
    raise failure or ClientError("The cluster lists no broker.")


async def can_elect(nodes: Nodes, *, unclean: bool = False) -> bool:
    """Whether the cluster knows the request. Raises ClientError."""
    versions = await nodes.versions(await controller_of(nodes))
    return versions.speaks(ElectLeadersRequest, _UNCLEAN_SINCE if unclean else 0)


async def can_reassign(nodes: Nodes) -> bool:
    """Whether the cluster knows the request (Kafka 2.4). Raises ClientError."""
    return (await nodes.versions(await controller_of(nodes))).speaks(AlterPartitionReassignmentsRequest)


async def elect(
    nodes: Nodes, partitions: Iterable[TopicPartition], *, unclean: bool = False
) -> Rows[PartitionChange]:
    """Elects the preferred leaders, or with `unclean` replicas out of sync. Raises ClientError.

    ELECTION_NOT_NEEDED is no error: the partition has that leader already.
    """
    node = await controller_of(nodes)
    version = (await nodes.versions(node)).pick(ElectLeadersRequest, at_least=_UNCLEAN_SINCE * unclean)
    topics = by_topic(partitions)
    request = ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED,
        topic_partitions=[
            TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics.items()
        ],
        timeout_ms=_TIMEOUT_MS,
    )
    response: ElectLeadersResponse = await nodes.ask(node, request, version, limit_s=LIMIT_S)
    results = [
        (row.topic, result.partition_id, result.error_code, result.error_message)
        for row in response.replica_election_results
        for result in row.partition_result
    ]
    return Rows(
        _changes(results, ErrorCode.ELECTION_NOT_NEEDED, nodes.name_of(node)),
        _refusal("ElectLeaders", response.error_code, None, node, nodes),
    )


async def reassign(
    nodes: Nodes, replicas: Mapping[TopicPartition, Sequence[int] | None]
) -> Rows[PartitionChange]:
    """Begins reassignments to these replicas; None cancels one. Raises ClientError.

    NO_REASSIGNMENT_IN_PROGRESS is no error: there is nothing to cancel.
    """
    node = await controller_of(nodes)
    targets = {name: goal if goal is None else list(goal) for name, goal in replicas.items()}
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=_TIMEOUT_MS,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(
                        partition_index=number, replicas=targets[TopicPartition(topic, number)]
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(sorted(replicas)).items()
        ],
    )
    response: AlterPartitionReassignmentsResponse = await nodes.ask(node, request, limit_s=LIMIT_S)
    results = [
        (topic.name, row.partition_index, row.error_code, row.error_message)
        for topic in response.responses
        for row in topic.partitions
    ]
    return Rows(
        _changes(results, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, nodes.name_of(node)),
        _refusal("AlterPartitionReassignments", response.error_code, response.error_message, node, nodes),
    )


async def list_reassignments(
    nodes: Nodes, partitions: Iterable[TopicPartition] | None = None
) -> Rows[Reassignment]:
    """The reassignments under way, of these partitions or of all. Raises ClientError."""
    node = await controller_of(nodes)
    topics = None
    if partitions is not None:
        topics = [
            TopicPartitionIndexes(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=topics)
    response: ListPartitionReassignmentsResponse = await nodes.ask(node, request)
    return Rows(
        [
            Reassignment(
                topic.name,
                row.partition_index,
                tuple(row.replicas),
                tuple(row.adding_replicas),
                tuple(row.removing_replicas),
            )
            for topic in response.topics
            for row in topic.partitions
        ],
        _refusal("ListPartitionReassignments", response.error_code, response.error_message, node, nodes),
    )


def _changes(
    results: Iterable[tuple[str, int, int, str | None]], harmless: ErrorCode, source: str
) -> list[PartitionChange]:
    return [
        PartitionChange(topic, partition, 0 if code == harmless else code, message or "", source=source)
        for topic, partition, code, message in results
    ]


def _refusal(api: str, code: int, message: str | None, node: int, nodes: Nodes) -> list[CoordinatorAnswer]:
    """The error of the whole request, if there is one."""
    if not code:
        return []
    source = nodes.name_of(node)
    return [CoordinatorAnswer("", api, error_of(code), node, message=message or "", source=source)]
