"""KLP405 mapping-leaked

What it sees: a node of KoP's mapping tree names a group that has no member with
this host and client id, and no other group has one.

Why it matters: the next consumer with this host and client id that has no group,
or whose own node was not written, is counted to a group that no longer reads.

How it decides: the members of the group are known, none of them has this host and
client id, and no member of another group has (that would be KLP403). Where
traffic of a group without members grows, it is a warning: another consumer is
counted to it. If members are not known, it is a notice where a restart of a broker
ended all series of the group, other groups have read its partitions since, and its
node is still there: nodes are not ephemeral, so those of a broker that was killed
stay.

What it needs: a listing of the mapping tree (read access to /client_group_id in
ZooKeeper), and the members of the groups (Describe on the groups). Without the listing,
or without the members, it is undetermined. Scrapes of the brokers' metrics, from before
and after a restart, stand in for the members: then it is a notice.

What to do: delete the nodes (kelpie mappings repair waits before it does so, in
case the consumer is only starting).

When it is wrong: a consumer that calls assign() and commits for a group has a node
and is no member. One that has just asked for its coordinator has a node, and is a
member some moments later. A group that has read nothing since the restart may
only have nothing to read.

Reproduce: kelpie lab run stale-mapping
"""

from collections.abc import Sequence

from kelpie.attribution.counters import Series
from kelpie.cluster import ClusterView, commands
from kelpie.cluster.traffic import Span, total
from kelpie.doctor import checks
from kelpie.doctor.attribution import (
    MEMBERS,
    NODES,
    by_path,
    described_node,
    has_no_members,
    is_of_kop,
    members_are_known,
    messages,
    partition_of,
    quoted_growth,
    quoted_node,
    registered,
    wanted,
)
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, listed
from kelpie.observations import MappingNode

_MOST_QUOTES = 4


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    history = cluster.mapping_history
    if not is_of_kop(cluster) or (history.is_known and not history.groups):
        return ABSENT
    if not history.is_known:
        return undetermined(NODES) if cluster.traffic_history.labelled else ABSENT
    if not history.standing:
        return ABSENT
    case_by_group = {case.group: case for case in cases}
    taken = by_path(registered(cluster, cases))
    findings, unknown = [], set()
    for path, node in history.standing.items():
        case = case_by_group.get(node.group)
        if path in taken or case is None:
            continue
        if case.members is None and case.listed is not False:
            finding = _after_restart(cluster, node)
            unknown |= {node.group} if finding is None else set()
        else:
            finding = _of_members(cluster, node, case)
        if finding is not None and wanted(cluster, cases, node.group):
            findings.append(finding)
    if findings:
        return findings
    return undetermined(MEMBERS) if unknown or not members_are_known(cases) else ABSENT


def _of_members(cluster: ClusterView, node: MappingNode, case: Case) -> Finding:
    nobody = has_no_members(case)
    grown = _grown(cluster, node.group) if nobody else []
    without = "no member" if nobody else "no member with this host and client id"
    summary = f"{_effect(node)}, and it has {without}"
    if grown:
        amount = messages(total(span.growth[series] for span, series in grown))
        summary += f"; {amount} were counted to it all the same"
    state = case.described
    return RULE.finding(
        Severity.WARNING if grown else Severity.NOTICE,
        node.group,
        f"{summary}.",
        why="Whoever comes with this host and client id and has no node of its own is counted to this group."
        + (" Either that has happened, or a consumer of this group only calls assign()." if grown else ""),
        evidence=[
            quoted_node(node),
            *(
                [Evidence.of(state, f"{node.group}: {state.state}, {counted(len(state.members), 'member')}")]
                if state is not None
                else []
            ),
            *(quoted_growth(span, series) for span, series in grown[:_MOST_QUOTES]),
        ],
        remedies=_remedies(cluster),
        cause=node.path,
        check=checks.node(cluster, node.path),
        partitions=sorted({partition_of(series) for _, series in grown}),
    )


def _effect(node: MappingNode) -> str:
    return f"Group {node.group} may be counted too high: {described_node(node)} names it"


def _grown(cluster: ClusterView, group: str) -> list[tuple[Span, Series]]:
    """Growth between two scrapes, or since a restart that a scrape before shows."""
    return [
        (span, series)
        for span in cluster.traffic_history.newest
        if span.first is not None or span.after_restart
        for series in span.grown_series.get(group, ())
    ]


def _after_restart(cluster: ClusterView, node: MappingNode) -> Finding | None:
    """Its group read before the restart and not since, though others have read the same partitions."""
    history = cluster.traffic_history
    if not history.restarted or cluster.mapping_history.unchanged(node) < 2 or _grown(cluster, node.group):
        return None
    read_since = {
        partition_of(series): (span, series) for span in history.restarted for series in span.growth
    }
    missed = sorted(
        {partition_of(series) for series in history.labelled.get(node.group, ())} & read_since.keys()
    )
    if not missed:
        return None
    times = cluster.mapping_history.unchanged(node)
    span, series = read_since[missed[0]]
    return RULE.finding(
        Severity.NOTICE,
        node.group,
        f"{_effect(node)}, and it has read nothing since the broker was started again; others have read "
        f"{listed(missed)}, where it used to read.",
        why="Nodes are not ephemeral: those of a broker that was killed stay. Whoever comes with this host "
        "and client id and has no node of its own is counted to this group.",
        evidence=[
            quoted_node(node),
            Evidence(f"the same in {counted(times, 'listing')} in a row"),
            quoted_growth(span, series),
            *_counted_to_such(cluster, node),
        ],
        remedies=[*_remedies(cluster), Remedy(f"To be sure, look whether it has members: {MEMBERS}.")],
        cause=node.path,
        check=checks.node(cluster, node.path),
    )


def _counted_to_such(cluster: ClusterView, node: MappingNode) -> list[Evidence]:
    """Other nodes that stand as before, and whose group is counted: whether it reads itself is not known."""
    evidence = []
    for other in cluster.mapping_history.standing.values():
        grown = _grown(cluster, other.group)
        if other.path != node.path and cluster.mapping_history.unchanged(other) > 1 and grown:
            amount = messages(total(span.growth[series] for span, series in grown))
            evidence.append(
                Evidence.of(
                    other,
                    f"{other.path} = {other.group!r} stands as before, too; {amount} were counted to "
                    f"{other.group} since, whoever has read them",
                )
            )
    return evidence[:_MOST_QUOTES]


def _remedies(cluster: ClusterView) -> list[Remedy]:
    return [Remedy("Delete nodes that belong to no member.", commands.mappings("repair", cluster))]


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "has a leaked node in KoP's mapping tree",
        "have leaked nodes in KoP's mapping tree",
    ),
    judge_cluster=judge,
)
