"""The order in which a cluster is asked. Each step needs what the one before has found; within a step, all
brokers are asked at once.

1. Every broker: its view of the cluster, its groups (`brokers`).
2. Every coordinator: its groups' states and offsets (`groups`, `offsets`); every broker: who coordinates what
is disputed (`coordinators`), its settings (`settings`). 3. Whoever answered that it is not the coordinator:
who is, and that one is asked instead, once. 4. The topics that groups read: partitions (`topics`), settings;
then, after the offsets, the ends of logs (`ends`). In that order, or a healthy consumer would seem to be
ahead of the log. 5. Open transactions (`transactions`) and epochs (`epochs`), where the rows so far call for
it.

Requests grow with the number of brokers, not of groups.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kelpie.client.failures import BadSettings, ClientError, NoBroker
from kelpie.client.nodes import Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey.asking import Asking, Clock, few_collections, together
from kelpie.client.survey.brokers import FirstRound, meet_all
from kelpie.client.survey.coordinators import Coordinators
from kelpie.client.survey.eligible import ask_eligible
from kelpie.client.survey.ends import ask_ends
from kelpie.client.survey.epochs import ask_epochs
from kelpie.client.survey.groups import describe_groups
from kelpie.client.survey.offsets import Partitions, fetch_offsets, needs_names
from kelpie.client.survey.options import SurveyOptions
from kelpie.client.survey.settings import ask_broker_settings, ask_topic_settings
from kelpie.client.survey.topics import ask_topics, best_views, leaders
from kelpie.client.survey.transactions import ask_transactions
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.model.time import Instant
from kelpie.observations import OFFSETS_TOPIC, Observations, PartitionView, Unasked
from kelpie.observations.cluster import NO_LEADER
from kelpie.wire.api.list_groups import ListedGroup

_EARLIER = "an earlier survey"


def wall_clock() -> Instant:
    return time.time_ns() // 1_000_000


async def survey(
    where: Nodes | Settings,
    *,
    groups: Sequence[str] | None = None,
    known: Mapping[str, str] | Sequence[str] = (),
    options: SurveyOptions | None = None,
    now: Clock = wall_clock,
) -> Observations:
    """The state of a cluster, as far as it can be had: what could not be asked is in `unasked`.

    `groups`: those to look at; all if left out. `known`: further ones, known from elsewhere (and from where),
    which are asked for although no broker may list them. Raises BadSettings, and nothing else that a cluster
    can cause.
    """
    options = options or SurveyOptions()
    if isinstance(where, Nodes):
        where.forget_failures()  # Of an earlier survey; in this one each counts once.
        with few_collections():
            return await _survey(where, groups, known, options, now)
    try:
        nodes = await Nodes.open(where)
    except BadSettings:
        raise
    except ClientError as error:
        return _nobody(error, known, now)
    async with nodes:
        with few_collections():
            return await _survey(nodes, groups, known, options, now)


async def _survey(
    nodes: Nodes,
    groups: Sequence[str] | None,
    known: Mapping[str, str] | Sequence[str],
    options: SurveyOptions,
    now: Clock,
) -> Observations:
    asking = Asking(nodes, options, now)
    asking.seen.known_groups = _sources(known)
    first = await meet_all(asking)
    listed = {group.group_id: group for own in first.listed.values() for group in own}
    everyone = dict.fromkeys([*listed, *asking.seen.known_groups, *(groups or ())])
    wanted = list(everyone if groups is None else dict.fromkeys(groups))
    by_lister = {node: [group.group_id for group in own] for node, own in first.listed.items()}
    coordinators = Coordinators(asking, by_lister)
    await coordinators.look_up(coordinators.disputed, everyone)
    plan = coordinators.by_node(wanted)
    await together(
        *(_ask_coordinator(asking, first, node, own, listed) for node, own in plan.items()),
        *(ask_broker_settings(asking, node) for node in asking.reached if options.settings),
        *([ask_eligible(asking)] if NO_LEADER in coordinators.leaders.values() else []),
    )
    await _follow_denials(asking, first, coordinators, listed)
    if options.ends:
        await _ask_positions(asking, first)
    await _note_addresses(asking)
    return asking.seen


async def _ask_coordinator(
    asking: Asking,
    first: FirstRound,
    node: int,
    groups: Sequence[str],
    listed: Mapping[str, ListedGroup],
) -> None:
    described = describe_groups(asking, node, groups, listed)
    if not asking.options.offsets:
        await described
        return
    committing = [
        group for group in groups if group not in listed or listed[group].group_type.lower() != "share"
    ]
    if needs_names(asking, node):
        await described
        await fetch_offsets(asking, node, committing, _partitions_of(asking, first, node, committing))
    else:
        await together(described, fetch_offsets(asking, node, committing))


def _partitions_of(
    asking: Asking, first: FirstRound, node: int, groups: Iterable[str]
) -> dict[str, Partitions]:
    """Which partitions to ask for, where the broker cannot be asked for all that a group has."""
    there = {
        name: [partition.partition_index for partition in topic.partitions]
        for name, topic in first.all_topics.get(node, {}).items()
        if name != OFFSETS_TOPIC
    }
    subscribed: defaultdict[str, set[str]] = defaultdict(set)
    for state in asking.seen.states:
        for member in state.members:
            subscribed[state.group].update(member.subscribed or ())
            subscribed[state.group].update(name.topic for name in member.assigned or ())
    return {
        group: {name: there[name] for name in sorted(subscribed[group]) if name in there}
        if group in subscribed
        else there
        for group in groups
    }


async def _follow_denials(
    asking: Asking, first: FirstRound, coordinators: Coordinators, listed: Mapping[str, ListedGroup]
) -> None:
    """Groups whose supposed coordinator answered that it is not: who is?"""
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
        if node in asking.reached and node != coordinators.leaders[partition]:
            elsewhere[node].append(group)
    await together(*(_ask_coordinator(asking, first, node, own, listed) for node, own in elsewhere.items()))


async def _ask_positions(asking: Asking, first: FirstRound) -> None:
    options = asking.options
    topics = _topics_read(asking.seen)
    settings = [OFFSETS_TOPIC, *(name for name in topics if name != OFFSETS_TOPIC)]
    await together(
        ask_topics(asking, first, topics),
        *([ask_topic_settings(asking, settings)] if options.settings else []),
    )
    best = best_views(asking.seen.partitions)
    read = set(topics)
    by_leader = leaders(asking, best, sorted(name for name in best if name.topic in read))
    await ask_ends(asking, by_leader)
    await together(
        *([ask_transactions(asking, _held_back(asking, best))] if options.transactions else []),
        *([ask_epochs(asking, best)] if options.epochs else []),
    )


def _topics_read(seen: Observations) -> list[str]:
    """Topics that groups have committed offsets in, are assigned to, or subscribe to."""
    topics = {row[1] for row in seen.committed}
    for state in seen.states:
        for member in state.members:
            topics.update(member.subscribed or ())
            topics.update(name.topic for name in member.assigned or ())
    return sorted(topics)


def _held_back(
    asking: Asking, best: Mapping[TopicPartition, PartitionView]
) -> dict[int, list[TopicPartition]]:
    """Partitions whose last stable offset is behind, and those of groups with pending commits."""
    held = {row.name: None for row in asking.seen.ends if 0 <= row.stable < row.latest}
    unstable = {row[0] for row in asking.seen.committed if row[4] == ErrorCode.UNSTABLE_OFFSET_COMMIT}
    count = sum(name.topic == OFFSETS_TOPIC for name in best)
    if unstable and count:
        held |= {TopicPartition(OFFSETS_TOPIC, partition_for(group, count)): None for group in unstable}
    return leaders(asking, dict(best), held)


async def _note_addresses(asking: Asking) -> None:
    """Bootstrap addresses that did not answer, and that no broker announces as its own."""
    announced = {broker.address for broker in asking.nodes.brokers.values()}
    for address, outcome in (await asking.nodes.introductions()).items():
        if isinstance(outcome, ClientError) and address not in announced:
            asking.unasked("broker", [str(address)], outcome.reason)


def _sources(known: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    return dict(known) if isinstance(known, Mapping) else dict.fromkeys(known, _EARLIER)


def _nobody(error: ClientError, known: Mapping[str, str] | Sequence[str], now: Clock) -> Observations:
    """Not one broker could be asked."""
    causes = error.causes if isinstance(error, NoBroker) else (error,)
    at = now()
    rows = [Unasked("broker", str(cause.address or "?"), cause.reason, at) for cause in causes]
    return Observations(unasked=rows, known_groups=_sources(known))
