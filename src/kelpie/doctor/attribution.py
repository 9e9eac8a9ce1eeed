"""What the rules about traffic by group share: members by their node, and growth as evidence."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kelpie.attribution.addresses import described_client, mapping_path
from kelpie.attribution.counters import UNKNOWN, Amount, Series
from kelpie.cluster import ClusterView
from kelpie.cluster.traffic import NOTHING, Span
from kelpie.doctor.case import Case
from kelpie.doctor.finding import Evidence, Remedy
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted
from kelpie.observations import MappingNode, Member

MEMBERS = "the members of the groups, with host and client id (kafka-consumer-groups --describe --members)"
NODES = "the nodes of the mapping tree (/client_group_id) in ZooKeeper"
SCRAPES = "scrapes of the brokers' metrics"


class Registered(NamedTuple):
    """A member of a group, and the node that KoP would have for it."""

    group: str
    member: Member
    path: str | None
    """None: ZooKeeper refuses such a path, so there can be no node."""
    at: Instant | None
    source: str

    @property
    def evidence(self) -> Evidence:
        member = self.member
        return Evidence(
            f"member {member.member_id} of {self.group}: host {member.host}, client id {member.client_id!r}",
            self.source,
            self.at,
        )


class Loss(NamedTuple):
    """Traffic without a group, in one span."""

    span: Span
    series: Series
    amount: Amount


def losses(cluster: ClusterView, spans: Iterable[Span]) -> list[Loss]:
    """What brokers that count groups have counted without one."""
    return [
        Loss(span, series, span.growth[series])
        for span in spans
        if cluster.traffic_history.counts_groups(span.broker)
        for series in span.grown_series.get(UNKNOWN, ())
    ]


def is_of_kop(cluster: ClusterView) -> bool:
    """Whether anything of KoP's was seen. Plain Kafka counts no traffic by group, so nothing is missing."""
    return bool(cluster.scrapes or cluster.mapping_listings)


def registered(cluster: ClusterView, cases: Iterable[Case]) -> list[Registered]:
    """All members of which host and client id are known."""
    root = cluster.mapping_history.root
    members = []
    for case in cases:
        row = case.described or (case.generations[-1] if case.generations else None)
        if row is None:
            continue
        for member in row.members:
            if member.host:
                path = mapping_path(described_client(member.host, member.client_id), root)
                members.append(Registered(case.group, member, path, row.at, row.source))
    return members


def by_path(members: Iterable[Registered]) -> dict[str, list[Registered]]:
    """The members that have the same node. Those that cannot have one are left out."""
    sharing: dict[str, list[Registered]] = {}
    for each in members:
        if each.path is not None:
            sharing.setdefault(each.path, []).append(each)
    return sharing


def members_are_known(cases: Iterable[Case]) -> bool:
    """Whether the members of any group are known."""
    return any(case.members is not None for case in cases)


def has_no_members(case: Case) -> bool:
    """Whether its coordinator said so, or no broker knows the group."""
    return case.listed is False if case.members is None else not case.members


def owners(cases: Iterable[Case]) -> dict[TopicPartition, list[str]]:
    """Partition → the groups that have assigned it to a member. Topics are without tenant and namespace."""
    groups: dict[TopicPartition, list[str]] = {}
    for case in cases:
        for member in case.members or ():
            for name in member.assigned or ():
                groups.setdefault(TopicPartition(short(name.topic), name.partition), []).append(case.group)
    return groups


def short(topic: str) -> str:
    """The topic without tenant and namespace: "persistent://public/default/orders" is "orders"."""
    return topic.rpartition("/")[2] if topic.startswith("persistent://") else topic


def partition_of(series: Series) -> TopicPartition:
    return TopicPartition(short(series.topic), series.partition)


def broker_of(span: Span) -> str:
    return span.broker or "the broker"


def messages(amount: Amount) -> str:
    return counted(amount.messages, "message")


def quoted_growth(span: Span, series: Series) -> Evidence:
    """The line of a series, and what it was in the scrape before."""
    row = span.last.rows[series]
    label = "without group" if row.group is None else f'group="{row.group}"'
    now = span.last.amounts[series].messages
    text = f"MESSAGE_OUT {label}, partition {series.partition} of {series.topic}: {now}"
    if span.first is not None:
        before = span.first.amounts.get(series, NOTHING).messages
        text += (
            f", and {before} in {span.first.scrape.source}"
            if before
            else (f"; {span.first.scrape.source} has no such series")
        )
    return Evidence.of(row, text)


def described_node(node: MappingNode) -> str:
    """As people write it: "the node of app-1 on 10.0.0.7"."""
    place = f" on {node.host}" if node.host else ""
    return f"the node of {node.client_id or 'the empty client id'}{place}"


def quoted_node(node: MappingNode) -> Evidence:
    version = f", version {node.version}" if node.version >= 0 else ""
    return Evidence.of(node, f"{node.path} = {node.group!r}{version}")


def wanted(cluster: ClusterView, cases: Iterable[Case], group: str) -> bool:
    """Whether a finding about this group is wanted: a person may have named some groups."""
    return cluster.all_groups or any(case.group == group for case in cases)


def growing_together(newest: Sequence[Span]) -> Mapping[str, list[tuple[Span, Series]]]:
    """Group → its series that grew in the newest spans of which both scrapes are known."""
    series_by_group: dict[str, list[tuple[Span, Series]]] = {}
    for span in newest:
        if span.first is not None:
            for group, grown in span.grown_series.items():
                series_by_group.setdefault(group, []).extend((span, series) for series in grown)
    return series_by_group


RECONNECT = Remedy(
    "A connection keeps the answer of its first lookup, also an empty one: restart the consumers that have "
    "lost their label, after the node is there again."
)
