"""KLP402 mapping-missing

What it sees: a member of a group has no node in KoP's mapping tree.

Why it matters: KoP looks up the group of a consumer when one of its connections
fetches its first records. Open connections keep their label. The next connection,
after a partition has moved or a broker was restarted, gets none, and what the
consumer reads is counted to no group (KLP401).

How it decides: host and client id of each member (from a survey, or from
kafka-consumer-groups --describe --members) give the path of its node. The
node is missing if the listing nearest in time does not have it; without times, if
no listing has it. Without members, the rule names a group whose own counters grew
between two scrapes, if no node in a listing made between them names it.

What it needs: a listing of the mapping tree (read access to /client_group_id in
ZooKeeper), and the members of the groups (Describe on the groups). Without the listing,
or without any member, it is undetermined. Instead of members, two scrapes of a broker's
metrics do, with a listing made between them, all three with their times.

What to do: write the missing nodes (kelpie mappings repair). If it happens again,
look for what deletes them: a restart of the broker that answered FindCoordinator,
or an idle connection (KLP407).

When it is wrong: if brokers see a consumer through different addresses (NAT), its
coordinator reports another host than the one in the path of the node. A client id
that ZooKeeper refuses as a path (control characters, empty parts) never has a node:
the finding says so, and only another client id helps.

Reproduce: kelpie lab run finder-restarted
"""

from collections import Counter
from collections.abc import Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.doctor import checks
from kelpie.doctor.attribution import (
    MEMBERS,
    NODES,
    RECONNECT,
    Registered,
    growing_together,
    is_of_kop,
    quoted_growth,
    registered,
    wanted,
)
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.idle_close import idle_closes
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import counted, first_of

_NAMES = 3
_MOST_QUOTES = 6
_WHY = "gets no label, and what it reads is counted to no group. Connections that are open keep theirs."


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    history = cluster.mapping_history
    if not is_of_kop(cluster):
        return ABSENT
    if not history.groups and not cluster.traffic_history.labelled:
        return ABSENT  # KoP does not count groups here, and writes no nodes.
    if not history.is_known:
        return undetermined(NODES)
    members = registered(cluster, cases)
    explained = {close.group for close in idle_closes(cluster, cases)}
    missing: dict[str, list[Registered]] = {}
    for each in members:
        node = history.node(each.path, each.at) if each.path is not None else None
        if node is None and each.group not in explained and wanted(cluster, cases, each.group):
            missing.setdefault(each.group, []).append(each)
    sizes = Counter(each.group for each in members)
    findings = [
        _of_members(cluster, group, lacking, sizes[group]) for group, lacking in sorted(missing.items())
    ]
    findings += _of_traffic(cluster, {*explained, *(each.group for each in members)})
    if findings:
        return findings
    return ABSENT if members else undetermined(MEMBERS)


def _of_members(cluster: ClusterView, group: str, lacking: Sequence[Registered], total: int) -> Finding:
    refused = [each for each in lacking if each.path is None]
    first = lacking[0]
    names = first_of([each.member.client_id or "(empty)" for each in lacking], _NAMES)
    reason = " ZooKeeper refuses such a client id as a path." if len(refused) == len(lacking) else ""
    return RULE.finding(
        Severity.WARNING,
        group,
        f"Group {group} will be counted too low after the next reconnection: the mapping tree has no node "
        f"for {_whom(len(lacking), total)}, client id {names}.{reason}",
        why=f"The next connection from which such a member fetches {_WHY}",
        evidence=[
            *(each.evidence for each in lacking[:_MOST_QUOTES]),
            _absence(cluster, first.path),
        ],
        remedies=_remedies(cluster, only_refused=len(refused) == len(lacking)),
        members=[each.member.member_id for each in lacking],
        check=checks.members(cluster, group) if first.path is None else checks.node(cluster, first.path),
    )


def _whom(lacking: int, total: int) -> str:
    return "its only member" if total == 1 else f"{lacking} of its {total} members"


def _of_traffic(cluster: ClusterView, known: set[str]) -> list[Finding]:
    """Groups that read while the tree was listed, and that it does not name. This needs times."""
    findings = []
    for group, grown in sorted(growing_together(cluster.traffic_history.newest).items()):
        if not group or group in known:
            continue
        span, series = grown[0]
        first, last = (span.first.scrape.at if span.first is not None else None), span.last.scrape.at
        between = [
            listed
            for listed in cluster.mapping_history.listings
            if None not in (first, last, listed.listing.at)
            and (first or 0) <= (listed.listing.at or 0) <= (last or 0)
        ]
        had_traffic = span.first is not None and series in span.first.amounts
        nameless = not any(node.group == group for listed in between for node in listed.nodes.values())
        if between and nameless and had_traffic:
            findings.append(
                RULE.finding(
                    Severity.WARNING,
                    group,
                    f"Group {group} will be counted too low after the next reconnection: it was reading "
                    "when the mapping tree was listed, and no node names it.",
                    why=f"The next connection from which it fetches {_WHY}",
                    evidence=[
                        quoted_growth(span, series),
                        Evidence.of(
                            between[-1].listing,
                            f"{counted(len(between[-1].nodes), 'node')} of other groups, none of {group}",
                        ),
                    ],
                    remedies=_remedies(cluster),
                    check=checks.members(cluster, group),
                )
            )
    return findings


def _absence(cluster: ClusterView, path: str | None) -> Evidence:
    listed = cluster.mapping_history.listings[-1]
    name = path or "a path that ZooKeeper refuses"
    return Evidence.of(listed.listing, f"{name} is not among {counted(len(listed.nodes), 'node')}")


def _remedies(cluster: ClusterView, *, only_refused: bool = False) -> list[Remedy]:
    if only_refused:
        return [Remedy("Give these consumers a client.id of letters, digits, dots and dashes.")]
    return [Remedy("Write the missing nodes.", commands.mappings("repair", cluster)), RECONNECT]


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "has members without a node in KoP's mapping tree",
        "have members without a node in KoP's mapping tree",
    ),
    judge_cluster=judge,
)
