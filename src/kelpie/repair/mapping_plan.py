"""The words of `kelpie mappings`: what differs between members and tree, and what a repair would change."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from kelpie.attribution.reconciliation import LeakedMapping, MappedMember, Reconciliation
from kelpie.model.words import counted, first_of, listed
from kelpie.repair.mapping_survey import MappingSurvey, MappingTree
from kelpie.repair.plan import PlanTable
from kelpie.repair.rendering import printable

READ_ONCE = (
    "KoP reads a node once for each connection. A consumer that has fetched without a label keeps none until "
    "it connects again or its partition moves."
)
_MOST_NAMES = 3
_LONGEST = 32
"""Of a name in a table or a sentence. Programs get all of it with --json."""


def title(survey: MappingSurvey) -> str:
    """One sentence: how many differ."""
    differences = survey.reconciliation
    every_kind = (
        differences.missing,
        differences.wrong,
        differences.ambiguous,
        differences.leaked,
        differences.unmappable,
    )
    differing = sum(map(len, every_kind))
    if differing:
        return (
            f"{counted(differing, 'mapping')} {'differs' if differing == 1 else 'differ'} from the members."
        )
    return "Mappings and members agree."


def seen(survey: MappingSurvey, tree: MappingTree) -> tuple[str, ...]:
    """The facts, in sentences."""
    differences = survey.reconciliation
    groups = len({member.group for member in survey.members})
    members, nodes = counted(len(survey.members), "member"), counted(len(survey.nodes), "node")
    sentences = [
        f"{counted(groups, 'group')} {'has' if groups == 1 else 'have'} {members}. "
        f"{tree.root} has {nodes} below it; {differences.correct:,} of them "
        f"{'is' if differences.correct == 1 else 'are'} right."
    ]
    if not survey.has_root:
        sentences.append(
            f"There is no node {tree.root} at {tree.hosts}. Either the brokers write no mappings "
            "(kopEnableGroupLevelConsumerMetrics=false, the default of KoP), or they write them to another "
            "path (groupIdZooKeeperPath, or a path behind HOST:PORT), or all of them are lost."
        )
    elsewhere = [member for leaked in differences.leaked for member in leaked.elsewhere]
    if elsewhere:
        names = _names(f"{_short(member.group)} ({member.client.host})" for member in elsewhere)
        sentences.append(
            f"{counted(len(elsewhere), 'member')} without a node: {names}. There is a node with the same "
            "group and client id under another host, which stays. Brokers probably see these clients with "
            "different addresses: NAT, or a proxy before some brokers."
        )
    return tuple(sentences)


def warnings(survey: MappingSurvey, kept: Sequence[LeakedMapping]) -> tuple[str, ...]:
    """What limits the answer. `kept`: leaked nodes that a repair would not delete."""
    differences = survey.reconciliation
    sentences = [
        f"{item} could not be asked: {reason}" for item, reason in islice(survey.failures.items(), 5)
    ]
    if differences.unjudged:
        groups = sorted({group for _, group in differences.unjudged})
        sentences.append(
            f"{counted(len(differences.unjudged), 'node')} not judged, because the members of the group are "
            f"not known: {_names(map(_short, groups))}."
        )
    memberless = [row for row in kept if row.group in survey.without_members]
    if memberless:
        groups = sorted({row.group for row in memberless})
        sentences.append(
            f"{counted(len(memberless), 'leaked node')} of groups without any member "
            f"{'stays' if len(memberless) == 1 else 'stay'}: "
            f"{_names(map(_short, groups))}. A consumer that only calls assign() has a node and is no "
            "member. If there is no such consumer, add --groups-without-members."
        )
    return tuple(sentences)


def tables(survey: MappingSurvey, tree: MappingTree) -> tuple[PlanTable, ...]:
    """One table for each kind of difference. The node comes last: its name may be long."""
    differences = survey.reconciliation
    members = Counter(member.group for member in survey.members)

    def name(path: str) -> str:
        return path.removeprefix(f"{tree.root}/")

    every = (
        PlanTable(
            "Missing: fetches of these clients may have no group",
            ("GROUP", "MEMBERS", "NODE"),
            tuple((_short(row.group), str(len(row.members)), name(row.path)) for row in differences.missing),
        ),
        PlanTable(
            "Wrong: fetches of these clients count for another group",
            ("NAMES", "SHOULD BE", "NODE"),
            tuple((_short(row.mapped), _short(row.group), name(row.path)) for row in differences.wrong),
        ),
        PlanTable(
            "Ambiguous: several groups have one host and client id",
            ("GROUPS", "NAMES", "NODE"),
            tuple(
                (_names(map(_short, row.groups)), _short(row.mapped or "-"), name(row.path))
                for row in differences.ambiguous
            ),
            ("Give each group its own client.id; no value of the node is right for all.",),
        ),
        PlanTable(
            "Leaked: no member has this host and client id",
            ("GROUP", "GROUP HAS", "NODE"),
            tuple(
                (_short(row.group), _count_of(members[row.group]), name(row.path))
                for row in differences.leaked
            ),
        ),
        PlanTable(
            "Unmappable: ZooKeeper refuses a node of this name; change the client.id",
            ("GROUP", "CLIENT ID"),
            tuple((_short(row.group), row.client.client_id) for row in differences.unmappable),
        ),
    )
    return tuple(table for table in every if table.rows)


def details(survey: MappingSurvey) -> dict[str, object]:
    """All differences, for programs."""
    differences = survey.reconciliation
    return {
        "members": len(survey.members),
        "nodes": len(survey.nodes),
        "correct": differences.correct,
        "missing": [
            {"path": row.path, "group": row.group, "members": _ids(row.members)}
            for row in differences.missing
        ],
        "wrong": [
            {"path": row.path, "group": row.group, "names": row.mapped, "members": _ids(row.members)}
            for row in differences.wrong
        ],
        "ambiguous": [
            {
                "path": row.path,
                "groups": list(row.groups),
                "names": row.mapped,
                "shared_partitions": list(map(str, row.shared)),
                "members": _ids(row.members),
            }
            for row in differences.ambiguous
        ],
        "leaked": [
            {
                "path": row.path,
                "group": row.group,
                "written": survey.nodes[row.path].modified,
                "group_has_members": row.group not in survey.without_members,
                "members_elsewhere": _ids(row.elsewhere),
            }
            for row in differences.leaked
        ],
        "unmappable": [
            {"group": row.group, "host": row.client.host, "client_id": row.client.client_id}
            for row in differences.unmappable
        ],
        "not_judged": [{"path": path, "group": group} for path, group in differences.unjudged],
        "not_asked": dict(survey.failures),
    }


def differences_left(reconciliation: Reconciliation) -> str:
    """What a survey after the repair shows."""
    parts = [
        counted(len(rows), word, word)
        for rows, word in (
            (reconciliation.missing, "missing"),
            (reconciliation.wrong, "wrong"),
            (reconciliation.ambiguous, "ambiguous"),
            (reconciliation.leaked, "leaked"),
        )
        if rows
    ]
    return f"Left: {listed(parts)}." if parts else "Mappings and members agree."


def _count_of(count: int) -> str:
    return counted(count, "member") if count else "no member"


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _names(names: Iterable[str]) -> str:
    return first_of(list(names), _MOST_NAMES)


def _ids(members: Iterable[MappedMember]) -> list[str]:
    return [member.member_id for member in members]
