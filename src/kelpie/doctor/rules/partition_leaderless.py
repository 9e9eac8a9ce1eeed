"""KLP311 partition-leaderless

What it sees: a partition of a topic that the group reads has no leader, or one
that is dead.

Why it matters: no client can read it or write to it. The group's other partitions
go on, so the group looks alive and lag does not even grow: producers cannot
write either. Consumers log at most a warning about metadata.

How it decides: a broker's metadata shows leader -1 for the partition, or a
leader that is not alive. The partitions are those that are assigned to members,
those of topics that they subscribe to, or, without members, those with
committed offsets. It is critical when none of them can be read, else a warning.

What it needs: metadata from one living broker, and the right Describe on the
topics; to know the partitions, members or committed offsets (Describe on the
group). Without them it is undetermined, and so is a leader of which nobody can
say whether it is alive. Replicas that are eligible to lead are told since Kafka 4.

What to do: start a broker whose replica has all records (in sync, or, in Kafka 4,
eligible to lead), or bring its log directory back; nothing is lost then. Other
replicas are not elected, unless unclean.leader.election.enable is true: then
whichever comes first leads, and what it lacks is lost. If the complete ones are
gone for good, elect an unclean leader, and lose what only they had.

When it is wrong: a leader that the doctor cannot reach but the clients can. The
finding says who said it was dead.

Reproduce: kelpie lab run partition-leaderless
"""

from kelpie.cluster import commands
from kelpie.doctor import checks
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.leader_remedies import leader_remedies
from kelpie.doctor.position_words import MOST_EVIDENCE, dead_evidence, some
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.signs import Sign
from kelpie.model.words import listed
from kelpie.observations import PartitionView

_MOST_IN_CAUSE = 3


def judge(case: Case) -> Judgement:
    read = case.reads.partitions
    if not read:
        return undetermined("which partitions it reads: it has neither members nor committed offsets")
    leaderless, unknown = [], []
    for name in read:
        view = case.cluster.view(name)
        has_leader = case.cluster.has_leader(name)
        if view is not None and has_leader is False:
            leaderless.append(view)
        elif has_leader is None:
            unknown.append(name)
    if leaderless:
        return _found(case, leaderless, len(read))
    if not unknown:
        return ABSENT
    return undetermined(f"whether {some(unknown)} {'has' if len(unknown) == 1 else 'have'} a leader")


def _found(case: Case, leaderless: list[PartitionView], of: int) -> Finding:
    cluster = case.cluster
    names = [view.name for view in leaderless]
    dead = sorted({node for view in leaderless for node in view.replicas if cluster.is_alive(node) is False})
    topics = sorted({name.topic for name in names})
    return RULE.finding(
        # A group that reads on from its other partitions is hurt, and not down.
        Severity.CRITICAL if len(names) == of else Severity.WARNING,
        case.group,
        f"Group {case.group} cannot read {some(names)} ({len(names)} of its {of} partitions): "
        f"{'it has' if len(names) == 1 else 'they have'} no leader.",
        why="Nobody can read these partitions or write to them until they have a leader; the others go on.",
        evidence=[
            *(Evidence.of(view, _described(view)) for view in leaderless[:MOST_EVIDENCE]),
            *dead_evidence(cluster, dead),
        ],
        remedies=[
            *leader_remedies(cluster, leaderless),
            Remedy(
                "Last resort: elect a leader that was not in sync. Records that only the others have are "
                "lost. The plan says which; read it before you apply it.",
                commands.kelpie("elect", cluster, "--unclean", name=names[0]),
            ),
        ],
        cause=listed(names) if len(names) <= _MOST_IN_CAUSE else ", ".join(topics),
        brokers=dead,
        partitions=names,
        check=checks.topic(case.cluster, names[0].topic, "--unavailable-partitions"),
    )


def _described(view: PartitionView) -> str:
    in_sync = listed(view.in_sync) or "none"
    return f"{view.name}: leader {view.leader}, replicas {listed(view.replicas)}, in sync {in_sync}"


RULE = Rule.of(
    __name__,
    judge,
    Presentation("reads partitions without a leader", "read partitions without a leader", stops_group=True),
    of_share_groups=True,
    asked_for=Sign.NOTHING_READ | Sign.LEADERLESS,
)
