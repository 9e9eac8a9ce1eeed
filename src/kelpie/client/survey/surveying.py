"""The order in which a cluster is asked. Each step needs the rows of the step before; within a step, all
brokers are asked at once. The questions are those of `client.admin`.

1. Every broker: its view of the cluster, its groups (`brokers`).
2. Every coordinator: its groups' states and committed offsets (`groups`, `committed`); every broker: who
   coordinates what is disputed (`coordinators`), its settings (`settings`); one broker: what time the
   leader of the controllers has (`quorum_clock`).
3. A group whose supposed coordinator denies: the brokers are asked who coordinates it, and that broker is
   asked instead, once. What may pass within seconds is asked again (`settling`).
4. The topics that groups read: partitions (`topics`), settings; then the ends of logs (`log_ends`), and their
   sizes (`log_sizes`). The ends come after the committed offsets, or a healthy consumer would seem to be
   ahead of the log.
5. Open transactions (`transactions`), epochs (`epochs`) and signs of MirrorMaker, where the rows so far
   call for it.

The number of requests grows with the number of brokers, not of groups.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelpie.client.admin.asking import (
    GROUPS_PER_REQUEST,
    PARTITIONS_PER_REQUEST,
    Asking,
    Clock,
    together,
    wall_clock,
)
from kelpie.client.admin.committed import Partitions, fetch_offsets, needs_names
from kelpie.client.admin.coordinators import GroupCoordinators
from kelpie.client.admin.epochs import ask_epochs
from kelpie.client.admin.groups import describe_groups
from kelpie.client.admin.log_ends import ask_ends
from kelpie.client.admin.log_sizes import ask_offsets_topic_sizes, ask_sizes, with_settings
from kelpie.client.admin.quorum_clock import read_quorum_clock
from kelpie.client.admin.settings import ask_broker_settings, ask_topic_settings
from kelpie.client.admin.topics import ask_eligible, ask_topics, best_views, by_leader
from kelpie.client.admin.transactions import ask_transactions
from kelpie.client.certificates import own_certificates
from kelpie.client.client_errors import BadSettings, ClientError
from kelpie.client.garbage import few_collections
from kelpie.client.nodes import Nodes
from kelpie.client.security import Security
from kelpie.client.settings import Settings
from kelpie.client.survey.brokers import meet_all
from kelpie.client.survey.settling import settle
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.selection import Selection
from kelpie.observations import OFFSETS_TOPIC, Observations, PartitionView, Unasked
from kelpie.observations.cluster import NO_LEADER
from kelpie.observations.groups import SHARE
from kelpie.observations.mirroring import signs_of_mirroring
from kelpie.wire.api.list_groups import ListedGroup

_EARLIER = "an earlier survey"


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """How much is asked: all that the doctor uses by default."""

    offsets: bool = True
    """Committed offsets."""
    ends: bool = True
    """Topics and partitions that groups read, and where they begin and end."""
    sizes: bool = False
    """The sizes of these partitions' logs: the traffic of groups in bytes follows from them."""
    transactions: bool = True
    """Open transactions, which hold a last stable offset back."""
    epochs: bool = True
    """Where leader epochs of commits end, if the leader has changed since."""
    settings: bool = True
    look_back_s: tuple[int, ...] = (15, 60, 600, 3600, 86_400)
    """Where logs ended so many seconds ago, for rates from one survey. Each costs one request a leader. It is
    not asked of tiered topics.
    """
    groups_per_request: int = GROUPS_PER_REQUEST
    partitions_per_request: int = PARTITIONS_PER_REQUEST
    most_views: int = 200_000
    """Up to so many rows, every broker is asked how it sees the topics; beyond that, two brokers."""


async def survey(
    where: Nodes | Settings,
    *,
    groups: Sequence[str] | Selection | None = None,
    known: Mapping[str, str] | Sequence[str] = (),
    topics: Iterable[str] = (),
    options: SurveyOptions | None = None,
    now: Clock = wall_clock,
    by_group: bool = False,
    fresh: Observations | None = None,
) -> Observations:
    """The state of a cluster, as far as it can be had: what could not be asked is in `unasked`.

    `groups`: the groups to survey, by name, or chosen among those that are known; all by default. `known`:
    further groups, by where they are known from; they are asked for although no broker may list them.
    `topics`: topics that groups read at an earlier time; whether they still exist is asked, too. `by_group`:
    committed offsets are `group_offsets`, one row for each group. `fresh`: settings, and sizes of the offsets
    topic, that were asked for a moment ago; they become part of the answer. Raises BadSettings, and nothing
    else that a cluster can cause.
    """
    fresh = fresh or Observations()
    options = options or SurveyOptions()
    if isinstance(where, Nodes):
        where.forget_failures()  # Of an earlier survey.
        with few_collections():
            return await _survey(
                where, groups, known, topics=topics, options=options, now=now, by_group=by_group, fresh=fresh
            )
    try:
        nodes = await Nodes.open(where)
    except BadSettings:
        raise
    except ClientError as error:
        return unreachable(error, known, now, where.security)
    async with nodes:
        with few_collections():
            return await _survey(
                nodes, groups, known, topics=topics, options=options, now=now, by_group=by_group, fresh=fresh
            )


async def _survey(
    nodes: Nodes,
    groups: Sequence[str] | Selection | None,
    known: Mapping[str, str] | Sequence[str],
    *,
    topics: Iterable[str],
    options: SurveyOptions,
    now: Clock,
    by_group: bool,
    fresh: Observations,
) -> Observations:
    asking = Asking(
        nodes,
        now,
        groups_per_request=options.groups_per_request,
        partitions_per_request=options.partitions_per_request,
        second_chance=True,
        by_group=by_group,
    )
    asking.seen.known_groups = _sources(known)
    asking.seen.settings += fresh.settings
    asking.seen.sizes += fresh.sizes
    by_broker = await meet_all(asking)
    listed = {group.group_id: group for rows in by_broker.values() for group in rows}
    everyone = dict.fromkeys([*listed, *asking.seen.known_groups])
    if isinstance(groups, Selection):
        groups = groups.chosen(everyone)
    wanted = list(everyone if groups is None else dict.fromkeys(groups))
    everyone |= dict.fromkeys(wanted)
    names_by_broker = {node: [group.group_id for group in rows] for node, rows in by_broker.items()}
    coordinators = GroupCoordinators(asking, asking.seen.partitions, names_by_broker)
    await coordinators.look_up(coordinators.disputed, everyone)
    plan = coordinators.by_node(wanted)
    await together(
        *(_ask_coordinator(asking, options, node, names, listed) for node, names in plan.items()),
        *(ask_broker_settings(asking, node) for node in asking.reached if options.settings),
        *([ask_eligible(asking, [OFFSETS_TOPIC])] if NO_LEADER in coordinators.leaders.values() else []),
        read_quorum_clock(asking),
        *([] if fresh.sizes else [ask_offsets_topic_sizes(asking, coordinators.leaders)]),
    )
    await _follow_denials(asking, options, coordinators, listed)
    await settle(
        asking,
        coordinators,
        wanted,
        lambda node, names: _ask_coordinator(asking, options, node, names, listed),
    )
    if options.ends:
        await _ask_positions(asking, options, topics)
    await _note_addresses(asking)
    return asking.seen


async def _ask_coordinator(
    asking: Asking,
    options: SurveyOptions,
    node: int,
    groups: Sequence[str],
    listed: Mapping[str, ListedGroup],
) -> None:
    described = describe_groups(asking, node, groups, listed)
    if not options.offsets:
        await described
        return
    committing = [
        group for group in groups if group not in listed or listed[group].group_type.lower() != SHARE
    ]
    if needs_names(asking, node):
        await described
        await fetch_offsets(asking, node, committing, _partitions_of(asking, node, committing))
    else:
        await together(described, fetch_offsets(asking, node, committing))


def _partitions_of(asking: Asking, node: int, groups: Iterable[str]) -> dict[str, Partitions]:
    """Which partitions to ask for, where the broker cannot be asked for all offsets of a group."""
    partitions = {
        name: [partition.partition_index for partition in topic.partitions]
        for name, topic in asking.all_topics.get(node, {}).items()
        if name != OFFSETS_TOPIC
    }
    subscribed: defaultdict[str, set[str]] = defaultdict(set)
    for state in asking.seen.states:
        for member in state.members:
            subscribed[state.group].update(member.subscribed or ())
            subscribed[state.group].update(name.topic for name in member.assigned or ())
    return {
        group: {name: partitions[name] for name in sorted(subscribed[group]) if name in partitions}
        if group in subscribed
        else partitions
        for group in groups
    }


async def _follow_denials(
    asking: Asking,
    options: SurveyOptions,
    coordinators: GroupCoordinators,
    listed: Mapping[str, ListedGroup],
) -> None:
    """Asks again for groups whose supposed coordinator answered NOT_COORDINATOR."""
    denied = {row.group for row in asking.seen.states if row.error is ErrorCode.NOT_COORDINATOR}
    denied |= {
        row.group
        for row in asking.seen.answers
        if row.error is ErrorCode.NOT_COORDINATOR and row.asked == "OffsetFetch"
    }
    if not denied or not coordinators.count:
        return
    await coordinators.look_up(map(coordinators.partition_of, denied), denied)
    elsewhere: defaultdict[int, list[str]] = defaultdict(list)
    for group in sorted(denied):
        partition = coordinators.partition_of(group)
        node = coordinators.named.get(partition, NO_LEADER)
        if node in asking.reached and node != coordinators.leaders.get(partition):
            elsewhere[node].append(group)
    await together(
        *(_ask_coordinator(asking, options, node, names, listed) for node, names in elsewhere.items())
    )


async def _ask_positions(asking: Asking, options: SurveyOptions, earlier: Iterable[str]) -> None:
    topics = _topics_read(asking.seen)
    settings = [OFFSETS_TOPIC, *(name for name in topics if name != OFFSETS_TOPIC)]
    await together(
        ask_topics(asking, sorted({*topics, *earlier}), options.most_views),
        *([ask_topic_settings(asking, settings)] if options.settings else []),
    )
    best = best_views(asking.seen.partitions)
    read = set(topics)
    leaders = by_leader(asking, best, sorted(name for name in best if name.topic in read))
    await ask_ends(asking, leaders, options.look_back_s, _tiered(asking.seen))
    if options.sizes:  # At once, so that little is written in between.
        await ask_sizes(asking, leaders, one_failure_a_broker=True)
        asking.seen.sizes = with_settings(asking.seen.sizes, asking.seen.settings)
    await together(
        ask_eligible(asking, {view.topic for view in best.values() if view.leader < 0} & read),
        *([ask_transactions(asking, _held_back(asking, best))] if options.transactions else []),
        *([ask_epochs(asking, best)] if options.epochs else []),
        ask_topics(asking, _signs_of_mirroring(asking.seen), options.most_views, only_existing=True),
    )


def _tiered(seen: Observations) -> set[str]:
    """Topics whose old segments are in a remote store (KIP-405)."""
    prefix = "topic "
    return {
        row.of.removeprefix(prefix)
        for row in seen.settings
        if row.name == "remote.storage.enable" and row.value == "true" and row.of.startswith(prefix)
    }


def _topics_read(seen: Observations) -> list[str]:
    """Topics that groups have committed offsets in, are assigned to, or subscribe to."""
    topics = {row.topic for row in seen.committed}
    topics.update(name.topic for names in {row.names for row in seen.group_offsets} for name in names)
    for state in seen.states:
        for member in state.members:
            topics.update(member.subscribed or ())
            topics.update(name.topic for name in member.assigned or ())
        topics.update(row.topic for row in state.share_positions)
    return sorted(topics)


def _signs_of_mirroring(seen: Observations) -> list[str]:
    """Topics that MirrorMaker would have made, where a group stands beyond the end of a log."""
    ends = {row.name: row.latest for row in seen.ends if not row.error and row.latest >= 0}
    beyond = {row.topic for row in seen.committed if row.offset > ends.get(row.name, row.offset)}
    told = {(row.names, row.offsets) for row in seen.group_offsets}
    beyond |= {
        name.topic
        for names, offsets in told
        for name, offset in zip(names, offsets, strict=True)
        if offset > ends.get(name, offset)
    }
    groups = (group for listing in seen.listings for group in listing.groups)
    return signs_of_mirroring(beyond, groups) if beyond else []


def _held_back(
    asking: Asking, best: Mapping[TopicPartition, PartitionView]
) -> dict[int, list[TopicPartition]]:
    """Partitions whose last stable offset is behind, and those of groups with pending commits."""
    held = {row.name: None for row in asking.seen.ends if 0 <= row.stable < row.latest}
    unstable = {row.group for row in asking.seen.committed if row.error == ErrorCode.UNSTABLE_OFFSET_COMMIT}
    count = sum(name.topic == OFFSETS_TOPIC for name in best)
    if unstable and count:
        held |= {TopicPartition(OFFSETS_TOPIC, partition_for(group, count)): None for group in unstable}
    return by_leader(asking, best, held)


async def _note_addresses(asking: Asking) -> None:
    """Bootstrap addresses that did not answer, and that no broker announces as its own."""
    announced = {broker.address for broker in asking.nodes.brokers.values()}
    for address, outcome in (await asking.nodes.introductions()).items():
        if isinstance(outcome, ClientError) and address not in announced:
            asking.unasked("broker", [address], outcome.reason)


def _sources(known: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    return dict(known) if isinstance(known, Mapping) else dict.fromkeys(known, _EARLIER)


def unreachable(
    error: ClientError,
    known: Mapping[str, str] | Sequence[str] = (),
    now: Clock = wall_clock,
    security: Security | None = None,
) -> Observations:
    """No broker could be asked. `security`: as it was tried; our own certificate may be the reason."""
    at = now()
    own = own_certificates(security, at) if security is not None else []
    rows = [Unasked("broker", str(cause.address or "?"), cause.reason, at) for cause in error.causes]
    return Observations(unasked=rows, certificates=own, known_groups=_sources(known))
