"""KLP316 clocks-differ

What it sees: the clock of a broker and the clock of the machine that looks differ
by more than five seconds.

Why it matters: ages compare times of brokers with the clock here. The doctor
converts them, so its findings hold; other tools do not. Brokers whose clocks differ
keep records for a longer or shorter time than set, and logs of several machines
cannot be put in order.

How it decides: the leader of the controllers tells its time (DescribeQuorum, KRaft
since 3.3). A commit that was read by now carries a time later than the clock here: the
clock here is slow. Or a look did not see a commit that carries a time before
that look: the clock here is fast. What is proven is an interval; the
finding tells its end that is nearer to zero. No record is written to find out.

What it needs: Describe on the cluster for the first; read access to
__consumer_offsets for the others, and for the last one also a second look. Where the
clocks cannot be compared, and a rule would decide otherwise if they
differed, that rule is undetermined and names the clock.

What to do: see whether the machines have their time from a time server (chronyc
tracking, timedatectl).

When it is wrong: a clock that was set during the look.

Reproduce: kelpie lab run clocks-differ
"""

from collections.abc import Sequence

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.words import numbered


def judge(cluster: ClusterView, _cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    by_shift: dict[bool, list[int]] = {}
    for node, skew in sorted(cluster.clocks.items()):
        if skew.shift:
            by_shift.setdefault(skew.shift > 0, []).append(node)
    if by_shift:
        return [_found(cluster, nodes, is_slow) for is_slow, nodes in by_shift.items()]
    open_nodes = [node for node, skew in cluster.clocks.items() if skew.least is None and skew.most is None]
    if cluster.clocks and len(open_nodes) == len(cluster.clocks):
        return undetermined("a time that a broker wrote: no commit and no clock of a controller is known")
    return ABSENT


def _found(cluster: ClusterView, nodes: Sequence[int], is_slow: bool) -> Finding:
    """`is_slow`: the clock here is behind."""
    least = min(abs(_nearest(cluster, node)) for node in nodes)
    whom = f"that of {numbered('broker', nodes)}"
    return RULE.finding(
        Severity.NOTICE,
        None,
        f"The clock of this machine is at least {least / 1000:,.0f} s "
        f"{'behind' if is_slow else 'ahead of'} {whom}.",
        why="Ages were computed with the brokers' times converted to the clock of this machine.",
        evidence=[
            Evidence(
                f"{cluster.broker_name(node)}: its clock minus the clock here is {_interval(cluster, node)}",
                at=cluster.now,
            )
            for node in nodes
        ],
        remedies=[Remedy("See whether the machines have their time from a time server: timedatectl.")],
        cause="slow" if is_slow else "fast",
        brokers=nodes,
    )


def _nearest(cluster: ClusterView, node: int) -> int:
    skew = cluster.clocks[node]
    near = skew.least if skew.shift > 0 else skew.most
    assert near is not None
    return near


def _interval(cluster: ClusterView, node: int) -> str:
    skew = cluster.clocks[node]
    least = "any time" if skew.least is None else f"{skew.least / 1000:.1f} s"
    most = "any time" if skew.most is None else f"{skew.most / 1000:.1f} s"
    return f"{least} to {most}"


RULE = Rule.of(
    __name__, judge_cluster=judge, presentation=Presentation("has another clock", "have other clocks")
)
