"""KLP403 mapping-wrong

What it sees: a node of KoP's mapping tree names a group that has no member with
this host and client id, and another group has one.

Why it matters: what this consumer reads is counted to a group that does not read
it. The numbers of both groups are wrong, and no metric shows that.

How it decides: host and client id of each member name its node; the node holds
the name of another group, whose members are known, and none of them has this host
and client id. If both groups have such a member, it is KLP404.

What it needs: a listing of the mapping tree (read access to /client_group_id in
ZooKeeper), and the members of both groups (Describe on the groups). Without the
listing, or without the members of the group that the node names, it is undetermined.

What to do: write the right group into the node (kelpie mappings repair), then
restart the consumer, because its connections keep the group that they have read.

When it is wrong: a consumer of the other group that calls assign() is no member of
it. The node may be that consumer's.

Reproduce: kelpie lab run stale-mapping
"""

from collections.abc import Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.doctor import checks
from kelpie.doctor.attribution import (
    MEMBERS,
    NODES,
    RECONNECT,
    Registered,
    by_path,
    described_node,
    is_of_kop,
    members_are_known,
    quoted_node,
    registered,
    wanted,
)
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import listed
from kelpie.observations import MappingNode


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    history = cluster.mapping_history
    if not is_of_kop(cluster) or (history.is_known and not history.groups):
        return ABSENT
    if not history.is_known:
        return undetermined(NODES) if cluster.traffic_history.labelled else ABSENT
    if not members_are_known(cases):
        return undetermined(MEMBERS)
    known = {case.group for case in cases if case.members is not None or case.listed is False}
    findings, unknown = [], set()
    for path, sharing in sorted(by_path(registered(cluster, cases)).items()):
        node = history.node(path, sharing[0].at)
        if node is None or any(each.group == node.group for each in sharing):
            continue
        if node.group not in known:
            unknown.add(node.group)
        else:
            groups = sorted({each.group for each in sharing if wanted(cluster, cases, each.group)})
            findings += [_finding(cluster, node, sharing, group) for group in groups]
    if findings or not unknown:
        return findings or ABSENT
    return undetermined(f"the members of {listed(sorted(unknown))}")


def _finding(cluster: ClusterView, node: MappingNode, sharing: Sequence[Registered], group: str) -> Finding:
    return RULE.finding(
        Severity.WARNING,
        group,
        f"Group {group} is counted too low: what a member reads is counted to group {node.group}, because "
        f"{described_node(node)} names that group.",
        why=f"The consumption of {group} is shown too low, and that of {node.group} too high by as much.",
        evidence=[quoted_node(node), *(each.evidence for each in sharing)],
        remedies=[
            Remedy("Write the right group into the node.", commands.mappings("repair", cluster)),
            RECONNECT,
        ],
        cause=node.path,
        check=checks.node(cluster, node.path),
        members=[each.member.member_id for each in sharing],
    )


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "is counted to another group",
        "are counted to another group",
    ),
    judge_cluster=judge,
)
