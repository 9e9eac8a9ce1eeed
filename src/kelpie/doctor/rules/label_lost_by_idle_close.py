"""KLP407 label-lost-by-idle-close

What it sees: the node of a consumer in KoP's mapping tree is gone, while the
consumer still runs and no broker was restarted.

Why it matters: the Java client asks for its coordinator on a connection that it
does not use again, and closes it when it has been idle for
connections.max.idle.ms: nine minutes by default. KoP takes that for the end of
the consumer, and deletes the node. From then on, each new connection of this
consumer has no label. A consumer of a quiet topic has no label from its first
record on; a busy one keeps it until its partitions move. So every Java consumer
with default settings loses its label at some time, without any restart.

How it decides: one listing of the tree has the node, and the next one has other
nodes and not this one. The consumer goes on if it is still a member of its group,
or if its group is still counted under its own name after that. Without members
and times, it is probable if the client id is the Java client's default
(consumer-GROUP-1), and traffic without a group has begun on partitions that this
group used to read, or on a topic that no other group can have read. If scrapes
show that a broker was started again, that explains it, and this rule says nothing.

What it needs: two listings of the mapping tree, some minutes apart (read access to
/client_group_id in ZooKeeper). With one listing it is undetermined. That the consumer
goes on is seen from the members (Describe on the groups) or from scrapes of the
brokers' metrics; without the times of listings and scrapes it is only probable.

What to do: set connections.max.idle.ms of the consumers to -1, or to more than
metadata.max.age.ms and the longest quiet time; write the missing nodes (kelpie
mappings repair) and restart the consumers that have lost their label.

When it is wrong: without members and times, a consumer that was closed, while a
consumer without a group began to read the same topic, looks the same.

Reproduce: kelpie lab run idle-connection-closed
"""

from collections.abc import Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.cluster.traffic import total
from kelpie.doctor import checks
from kelpie.doctor.attribution import (
    MEMBERS,
    RECONNECT,
    is_of_kop,
    messages,
    partition_of,
    quoted_growth,
    quoted_node,
    wanted,
)
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.idle_close import IdleClose, idle_closes
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, first_of, listed

_MOST_QUOTES = 4
_NAMES = 5


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    history = cluster.mapping_history
    if not is_of_kop(cluster) or not history.groups:
        return ABSENT  # KLP401 and KLP402 say that listings are missing.
    findings = [
        _finding(cluster, close)
        for close in idle_closes(cluster, cases)
        if wanted(cluster, cases, close.group)
    ]
    if findings:
        return findings
    if len(history.listings) < 2:
        return undetermined("a second listing of the mapping tree, some minutes later")
    return ABSENT


def _finding(cluster: ClusterView, close: IdleClose) -> Finding:
    node, group = close.vanished.node, close.group
    lost = close.losses
    effect = "will be counted too low"
    gone = f"the node of {node.client_id} on {node.host} is gone"
    if lost:
        topics = listed(sorted({loss.series.topic for loss in lost}))
        amount = messages(total(loss.amount for loss in lost))
        certainty = "those of this group" if close.member is not None else "probably those of this group"
        effect = "is counted too low" if close.member is not None else "is probably counted too low"
        summary = f"{gone}, and {amount} of {topics} were counted to no group: {certainty}."
    elif close.member is not None:
        summary = f"{gone}, though this consumer still is a member of the group."
    elif _is_probable(close):
        summary = f"{gone}. Between two scrapes the group was still counted under its own name."
    else:
        summary = f"{gone}, though the group reads on."
    return RULE.finding(
        Severity.WARNING if lost else Severity.NOTICE,
        group,
        f"Group {group} {effect}: {summary}",
        why="The Java client closes the connection on which it asked for the coordinator after "
        "connections.max.idle.ms (9 minutes by default), and KoP removes the node then. "
        + (
            "What it reads is counted to no group as long as it keeps its connections."
            if lost
            else "Connections that are open keep their label; the next one has none."
        ),
        evidence=[
            quoted_node(node),
            _absence(close),
            *(quoted_growth(loss.span, loss.series) for loss in lost[:_MOST_QUOTES]),
            *([close.member.evidence] if close.member is not None else []),
            *([quoted_growth(*close.counted)] if close.counted is not None else []),
        ],
        remedies=[
            Remedy("Set connections.max.idle.ms=-1 in these consumers, so that the connection stays."),
            Remedy("Write the missing nodes.", commands.mappings("repair", cluster)),
            RECONNECT,
            *(
                [Remedy(f"To be sure, look whether it is a member: {MEMBERS}.")]
                if _is_probable(close)
                else []
            ),
        ],
        cause=node.path,
        partitions=sorted({partition_of(loss.series) for loss in lost}),
        members=[close.member.member.member_id] if close.member is not None else [],
        since=close.vanished.gone.listing.at,
        check=checks.node(cluster, node.path),
    )


def _is_probable(close: IdleClose) -> bool:
    return close.member is None and close.vanished.gone.listing.at is None


def _absence(close: IdleClose) -> Evidence:
    nodes = close.vanished.gone.nodes.values()
    groups = sorted({node.group for node in nodes})
    return Evidence.of(
        close.vanished.gone.listing,
        f"not among {counted(len(nodes), 'node')} any more; those of {first_of(groups, _NAMES)} are there",
    )


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "lost the label of its traffic with an idle connection",
        "lost the label of their traffic with an idle connection",
    ),
    judge_cluster=judge,
)
