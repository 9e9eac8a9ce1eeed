"""A member of a group over the raw protocol, in the versions of its cluster."""

from typing import Any

from kelpie.wire import consumer_protocol
from kelpie.wire.api.describe_groups import DescribeGroupsRequest
from kelpie.wire.api.heartbeat import HeartbeatRequest
from kelpie.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kelpie.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from kelpie.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kelpie.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kelpie.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.lab.personas.client import Client, Sent
from tests.lab.personas.cluster import TOPIC, Cluster

MEMBER_ID_REQUIRED = 79
Protocols = tuple[tuple[str, bytes], ...]


def subscription(*topics: str) -> bytes:
    """A consumer's metadata. They must be readable: on others a Scala coordinator stumbles for ever."""
    return consumer_protocol.encode(consumer_protocol.Subscription(topics=list(topics)), 0)


SUBSCRIBED: Protocols = (("range", subscription(TOPIC)), ("roundrobin", subscription(TOPIC)))


class Member:
    """Requests are made of what it knows of itself; keywords change them."""

    def __init__(
        self,
        cluster: Cluster,
        name: str = "one",
        *,
        group: str | None = None,
        node: int = 0,
        instance: str | None = None,
        protocols: Protocols = SUBSCRIBED,
        session_ms: int = 20_000,
        rebalance_ms: int = 20_000,
        versions: dict[str, int] | None = None,
    ) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client(name, node)
        self.group = cluster.group if group is None else group
        self.instance = instance
        self.protocols = protocols
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.versions = versions or cluster.versions
        self.id = ""
        self.generation = -1
        self.protocol = protocols[0][0]
        self._refused: dict[Sent, Any] = {}

    # Joining.

    def join_request(self, protocol_type: str = "consumer", **changes: Any) -> JoinGroupRequest:
        values: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms if self.versions["Join"] >= 1 else -1,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": protocol_type,
            "protocols": [
                JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self.protocols
            ],
        }
        return JoinGroupRequest(**(values | changes))

    def start_join(self, **changes: Any) -> Sent:
        """What `joined` takes. Since version 4, a first join is sent again with the id that it was given."""
        request = self.join_request(**changes)
        sent = self.client.send(request, self.versions["Join"])
        if (
            self.versions["Join"] < 4
            or request.member_id
            or self.instance is not None
            or not request.group_id
        ):
            return sent
        answer = self.client.receive(sent)
        if answer.error_code != MEMBER_ID_REQUIRED:
            self._refused[sent] = answer
            return sent
        self.id = answer.member_id
        return self.start_join(**(changes | {"member_id": self.id}))

    def joined(self, sent: Sent) -> Any:
        answer = self._refused.pop(sent, None) or self.client.receive(sent)
        if answer.error_code == 0:
            self.id, self.generation, self.protocol = (
                answer.member_id,
                answer.generation_id,
                answer.protocol_name,
            )
        return answer

    def join(self, **changes: Any) -> Any:
        return self.joined(self.start_join(**changes))

    # Syncing.

    def start_sync(self, assignments: dict[str, bytes] | None = None, **changes: Any) -> Sent:
        values = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            **(
                {"protocol_type": "consumer", "protocol_name": self.protocol}
                if self.versions["Sync"] >= 5
                else {}
            ),
            "assignments": [
                SyncGroupRequestAssignment(member_id=member, assignment=given)
                for member, given in (assignments or {}).items()
            ],
        }
        return self.client.send(SyncGroupRequest(**(values | changes)), self.versions["Sync"])

    def sync(self, assignments: dict[str, bytes] | None = None, **changes: Any) -> Any:
        return self.client.receive(self.start_sync(assignments, **changes))

    # Staying and leaving.

    def heartbeat(self, **changes: Any) -> int:
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }
        code: int = self.client.ask(
            HeartbeatRequest(**(values | changes)), self.versions["Heartbeat"]
        ).error_code
        return code

    def leave(self, member_id: str | None = None, group: str | None = None) -> int:
        """The error of the group, or else of the member."""
        leaving = self.id if member_id is None else member_id
        group = self.group if group is None else group
        if self.versions["Leave"] < 3:
            request = LeaveGroupRequest(group_id=group, member_id=leaving)
        else:
            identity = MemberIdentity(member_id=leaving, group_instance_id=self.instance)
            request = LeaveGroupRequest(group_id=group, members=[identity])
        answer = self.client.ask(request, self.versions["Leave"])
        code: int = answer.error_code or (answer.members[0].error_code if answer.members else 0)
        return code

    # Offsets.

    def commit(
        self,
        offset: int,
        *,
        topic: str = TOPIC,
        partition: int = 0,
        metadata: str | None = "",
        version: int | None = None,
        kept: bool = True,
        **changes: Any,
    ) -> int:
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "topics": [
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata=metadata
                        )
                    ],
                )
            ],
        }
        ask = self.client.ask if kept else self.client.peek
        version = self.versions["Commit"] if version is None else version
        answer = ask(OffsetCommitRequest(**(values | changes)), version)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def committed(
        self, topic: str = TOPIC, partition: int = 0, version: int | None = None
    ) -> tuple[int, int]:
        """The offset, and the error of the partition or the group."""
        version = self.versions["FetchOffsets"] if version is None else version
        if version >= 8:
            topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
            asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group, topics=topics)])
            group = self.client.ask(asked, version).groups[0]
        else:
            old = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
            group = self.client.ask(OffsetFetchRequest(group_id=self.group, topics=old), version)
        found = group.topics[0].partitions[0]
        return found.committed_offset, found.error_code or group.error_code

    # Looking.

    def described(self, *, kept: bool = True) -> Any:
        ask = self.client.ask if kept else self.client.peek
        return ask(DescribeGroupsRequest(groups=[self.group]), self.versions["Describe"]).groups[0]

    def wait_for_state(self, state: str) -> None:
        self.cluster.until(lambda: self.described(kept=False).group_state, lambda seen: seen == state)
        self.described()


def assemble(*members: Member) -> None:
    """All join one group, in this order, and get an assignment each: the first one leads."""
    leader = members[0]
    for at, newcomer in enumerate(members):
        waiting = [(newcomer, newcomer.start_join())]
        if at:
            leader.wait_for_state("PreparingRebalance")
        waiting += [(member, member.start_join()) for member in members[:at]]
        for member, sent in sorted(waiting, key=lambda pair: members.index(pair[0])):
            assert member.joined(sent).error_code == 0
        settle(*members[: at + 1])


def settle(leader: Member, *others: Member) -> None:
    """The leader hands in the assignment, and everyone gets its own."""
    sent = [(member, member.start_sync()) for member in others]
    everyone = (leader, *others)
    assert leader.sync({member.id: member.client.client_id.encode() for member in everyone}).error_code == 0
    for member, each in sent:
        assert member.client.receive(each).assignment == member.client.client_id.encode()
