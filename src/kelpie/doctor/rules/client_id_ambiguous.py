"""KLP404 client-id-ambiguous

What it sees: consumers of two groups have the same host and the same client id,
so they share one node of KoP's mapping tree.

Why it matters: the node holds the group that wrote last, and a connection reads
the node once. So what both groups read may be counted to one of them. When a
consumer of one group closes, KoP deletes the node, and the other group loses its
label at its next connection.

How it decides: members of two groups whose host and client id give the same path;
or a node that names one group in one listing and another in the next one, while
both groups go on reading. It is a notice if that is only probable: the node has a
client id that a library gives to every consumer (librdkafka's is "rdkafka"), and a
group that reads between two scrapes is in no listing.

What it needs: the members of the groups (Describe on the groups); or two listings of
the mapping tree (read access to /client_group_id in ZooKeeper) and two scrapes of the
brokers' metrics, from which less is certain. If neither shows it and no member is
known, it is undetermined. With a listing that has no node it is absent: KoP counts no
group there.

What to do: give every group its own client.id. Nothing in KoP can tell the two
apart: a Fetch names host and client id, and no group.

When it is wrong: a consumer that was given another group.id keeps its client id;
shortly after the change, scrapes may show that both groups read. It is right about
hosts behind one address (NAT), and about IPv6 hosts of one network, of whose
addresses KoP keeps only the first part: they do share the node.

Reproduce: kelpie lab run shared-client-id
"""

import re
from collections.abc import Iterator, Sequence

from kelpie.attribution.counters import AMBIGUOUS, Series
from kelpie.cluster import ClusterView
from kelpie.cluster.traffic import Span
from kelpie.doctor import checks
from kelpie.doctor.attribution import (
    MEMBERS,
    NODES,
    Registered,
    by_path,
    growing_together,
    is_of_kop,
    members_are_known,
    quoted_growth,
    quoted_node,
    registered,
    wanted,
)
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, first_of, listed
from kelpie.observations import MappingNode

_DEFAULT_ID = re.compile(
    r"rdkafka|sarama|kafkajs|kgo|kafka-go|ruby-kafka|kafka-python-[\d.]+|aiokafka-[\d.]+|consumer-\d+|"
)
"""What libraries give to every consumer; also the empty one. Java's since 2.3 has the group in it."""
_NAMES = 5
_WHY = (
    "A Fetch names no group, so KoP cannot tell them apart: what both read may be counted to the one that "
    "wrote the node last; and when one of them closes, the other one loses its label."
)
_REMEDY = Remedy(
    "Give the consumers of each group a client.id of their own, as the group's name and a number."
)


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    history = cluster.mapping_history
    if not is_of_kop(cluster):
        return ABSENT
    if not history.is_known and not cluster.traffic_history.labelled:
        return ABSENT
    findings = {
        (finding.cause, finding.group): finding
        for finding in (
            *_by_traffic(cluster),
            *_by_default_id(cluster, cases),
            *_by_overwriting(cluster),
            *_by_members(cluster, cases),
        )
        if finding.group is None or wanted(cluster, cases, finding.group)
    }
    if findings:
        return list(findings.values())
    if members_are_known(cases) or (history.is_known and not history.groups):
        return ABSENT
    return undetermined(MEMBERS, *(() if history.is_known else (NODES,)))


def _by_members(cluster: ClusterView, cases: Sequence[Case]) -> Iterator[Finding]:
    """Members of two groups have the same node: that is certain."""
    for path, sharing in sorted(by_path(registered(cluster, cases)).items()):
        groups = sorted({each.group for each in sharing})
        if len(groups) > 1:
            yield from (_of_members(cluster, path, sharing, groups, group) for group in groups)


def _of_members(
    cluster: ClusterView, path: str, sharing: Sequence[Registered], groups: Sequence[str], group: str
) -> Finding:
    node = cluster.mapping_history.node(path, sharing[0].at)
    hosts = sorted({each.member.host.removeprefix("/") for each in sharing})
    client_id = sharing[0].member.client_id or "(empty)"
    holder = f"; its node names {node.group}" if node is not None else ""
    return RULE.finding(
        Severity.WARNING,
        group,
        f"Groups {first_of(groups, _NAMES)} may be counted wrongly: they share client id {client_id} on "
        f"{first_of(hosts, _NAMES)}{holder}.",
        why=_WHY,
        evidence=[*(each.evidence for each in sharing[:_NAMES]), *([quoted_node(node)] if node else [])],
        remedies=[_REMEDY],
        cause=path,
        members=[each.member.member_id for each in sharing],
        check=checks.members(cluster, group),
    )


def _by_overwriting(cluster: ClusterView) -> Iterator[Finding]:
    """One group's node was overwritten by another, and both read on."""
    growing = growing_together(cluster.traffic_history.newest)
    for before, after in cluster.mapping_history.overwritten:
        groups = (before.group, after.group)
        if not all(group in growing for group in groups):
            continue
        quotes = [quoted_node(before), quoted_node(after)]
        quotes += [quoted_growth(*growing[group][0]) for group in groups]
        for group in groups:
            yield RULE.finding(
                Severity.WARNING,
                group,
                f"Groups {before.group} and {after.group} may be counted wrongly: they share client id "
                f"{after.client_id or '(empty)'} on {after.host}. Its node named {before.group}, then "
                f"{after.group}, and both groups read on.",
                why=_WHY,
                evidence=quotes,
                remedies=[_REMEDY],
                cause=after.path,
                check=checks.node(cluster, after.path),
            )


def _by_default_id(cluster: ClusterView, cases: Sequence[Case]) -> Iterator[Finding]:
    """A node with a client id that names no client, and a group that reads without any node."""
    if members_are_known(cases):
        return
    growing = growing_together(cluster.traffic_history.newest)
    nameless = sorted(growing.keys() - cluster.mapping_history.groups - {"", AMBIGUOUS})
    nodes = {node.path: node for listed in cluster.mapping_history.listings for node in listed.nodes.values()}
    shared = [
        node for node in nodes.values() if _DEFAULT_ID.fullmatch(node.client_id) and node.group in growing
    ]
    if not nameless:
        return
    for node in shared:
        quotes = [quoted_growth(*growing[group][0]) for group in (node.group, *nameless[:_NAMES])]
        yield from (_probable(cluster, node, nameless, quotes, group) for group in (node.group, *nameless))


def _probable(
    cluster: ClusterView,
    node: MappingNode,
    nameless: Sequence[str],
    quotes: Sequence[Evidence],
    group: str,
) -> Finding:
    are = "is" if len(nameless) == 1 else "are"
    others = first_of(nameless, _NAMES)
    return RULE.finding(
        Severity.NOTICE,
        group,
        f"Groups {first_of([node.group, *nameless], _NAMES)} may be counted wrongly: they may share client "
        f"id {node.client_id or '(empty)'} on {node.host}, which a library gives to every consumer. Its "
        f"node names {node.group}, and {others} {are} reading without a node.",
        why=_WHY,
        evidence=[quoted_node(node), *quotes],
        remedies=[
            _REMEDY,
            Remedy(f"To be sure, describe the members: {MEMBERS}."),
        ],
        cause=node.path,
        check=checks.node(cluster, node.path),
    )


def _by_traffic(cluster: ClusterView) -> Iterator[Finding]:
    """Brokers that match a fetch by its partition, too, say `ambiguous` where two groups are left."""
    grown: list[tuple[Span, Series]] = growing_together(cluster.traffic_history.newest).get(AMBIGUOUS, [])
    if not grown or AMBIGUOUS in cluster.mapping_history.groups:
        return
    topics = sorted({series.topic for _, series in grown})
    yield RULE.finding(
        Severity.WARNING,
        None,
        f"Two groups or more are counted too low: {counted(len(grown), 'partition')} of {listed(topics)} "
        f"{'is' if len(grown) == 1 else 'are'} read by groups with the same host and client id, and their "
        f"traffic is labelled {AMBIGUOUS}.",
        why=_WHY,
        evidence=[quoted_growth(span, series) for span, series in grown[:_NAMES]],
        remedies=[_REMEDY],
        cause=AMBIGUOUS,
        check=checks.metrics(f"""grep -F 'group="{AMBIGUOUS}"'"""),
    )


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "shares host and client id with another group",
        "share host and client id with another group",
    ),
    judge_cluster=judge,
)
