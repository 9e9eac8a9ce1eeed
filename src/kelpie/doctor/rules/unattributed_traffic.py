"""KLP401 unattributed-traffic

What it sees: a broker with KoP counts messages that consumers read, and does
not know their group: the label group of MESSAGE_OUT, BYTES_OUT and ENTRIES_OUT
is empty.

Why it matters: these messages are missing from the consumption of some group.
Its rate seems to drop, or to stop, while it reads as before. Alerts on
consumption by group go off for a healthy group, or stay silent for a sick one.

How it decides: it compares two scrapes of the same broker. A series without a
group that has grown, or is new, was counted in between: a warning. A series that
stays the same tells nothing, because a broker shows a counter until it is
restarted. One scrape shows only that the messages were counted at some time
since the broker was started: a notice. If one group alone has the partition
assigned, the finding names that group. A broker whose series have no label
group at all has kopEnableGroupLevelConsumerMetrics=false, which is the default
and no fault.

What it needs: two scrapes of the metrics of each broker (kelpie doctor --evidence DIR
with the saved pages), of brokers with kopEnableGroupLevelConsumerMetrics=true. With one
scrape it says no more than a notice. Without a scrape it is undetermined where KoP's
mapping tree shows that groups are counted, and not judged elsewhere: plain Kafka counts
no group. Describe on the groups only to name the group.

What to do: compare the members of the groups with the mapping tree (kelpie
mappings check), and write what is missing (kelpie mappings repair). Then restart
the consumers that read these partitions: a connection keeps the answer of its
first lookup, also an empty one. KLP402 and KLP407 say which group has lost its
node, and how.

When it is wrong: a consumer that calls assign() and has no group.id has no group.
A scrape cannot tell it from a consumer whose group was lost.

Reproduce: kelpie lab run finder-restarted
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.cluster.traffic import total
from kelpie.doctor import checks
from kelpie.doctor.attribution import (
    NODES,
    RECONNECT,
    SCRAPES,
    Loss,
    broker_of,
    losses,
    members_are_known,
    messages,
    owners,
    partition_of,
    quoted_growth,
)
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant
from kelpie.model.words import counted, first_of, listed, ranges

_NAMES = 5
_MOST_QUOTES = 6
_CHECK = checks.metrics("""grep -F 'group=""'""")

Suspects = Mapping[TopicPartition, Sequence[str]]
"""The groups that have a partition assigned, and are not counted there under their own name."""


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    history = cluster.traffic_history
    if not history.scrapes:
        return undetermined(SCRAPES) if cluster.mapping_history.groups else ABSENT
    newest = losses(cluster, history.newest)
    ended = losses(cluster, [span for span in history.spans if span not in history.newest])
    by_topic: defaultdict[str, list[Loss]] = defaultdict(list)
    for loss in newest:
        by_topic[loss.series.topic].append(loss)
    suspects = _suspects(cluster, cases)
    findings = [_now(cluster, cases, suspects, lost) for _, lost in sorted(by_topic.items())]
    over: defaultdict[str, list[Loss]] = defaultdict(list)
    for loss in ended:
        if loss.series.topic not in by_topic and loss.span.last.scrape.at is not None:
            over[loss.series.topic].append(loss)
    findings += [_over(topic, lost) for topic, lost in sorted(over.items())]
    if findings:
        return findings
    if any(history.counts_groups(span.broker) is None for span in history.newest):
        return undetermined("whether kopEnableGroupLevelConsumerMetrics is true on the brokers")
    return ABSENT


def _now(cluster: ClusterView, cases: Sequence[Case], suspected: Suspects, lost: Sequence[Loss]) -> Finding:
    growing = [loss for loss in lost if loss.span.first is not None]
    shown = growing or lost
    amount, where = messages(total(loss.amount for loss in shown)), _where(shown)
    partitions = {partition_of(loss.series) for loss in shown}
    suspects = sorted({group for name in partitions for group in suspected.get(name, ())})
    group = suspects[0] if len(suspects) == 1 else None
    if growing:
        summary = f"{amount} of {where} were read between two scrapes and counted to no group"
    elif shown[0].span.after_restart:
        summary = f"{amount} of {where} were counted to no group since the broker was started again"
    else:
        summary = f"{amount} of {where} were counted to no group at some time since the broker was started"
    if group is not None:
        these = "this partition" if len(partitions) == 1 else "these partitions"
        summary = f"Group {group} is probably counted too low: {summary}, and no other group has {these}"
    return RULE.finding(
        Severity.WARNING if growing else Severity.NOTICE,
        group,
        f"{summary}.",
        why="The consumption of some group is shown too low by as much. "
        + (
            "It goes on as long as the consumers keep their connections."
            if growing
            else "One scrape does not tell whether it still happens; a second one does."
        ),
        evidence=[
            *(quoted_growth(loss.span, loss.series) for loss in shown[:_MOST_QUOTES]),
            *_hints(cluster, cases, suspects),
        ],
        remedies=_remedies(cluster),
        cause=lost[0].series.topic,
        partitions=sorted(partitions),
        since=_since(growing),
        check=_CHECK,
    )


def _over(topic: str, lost: Sequence[Loss]) -> Finding:
    return RULE.finding(
        Severity.NOTICE,
        None,
        f"{messages(total(loss.amount for loss in lost))} of {_where(lost)} were counted to no group; since "
        f"then no more.",
        why="The consumption of some group was shown too low by as much. The series stays in the scrapes "
        "with its last value, which means nothing any more.",
        evidence=[quoted_growth(loss.span, loss.series) for loss in lost[:_MOST_QUOTES]],
        cause=topic,
        partitions=sorted({partition_of(loss.series) for loss in lost}),
        until=max(loss.span.last.scrape.at or 0 for loss in lost),
        check=_CHECK,
    )


def _since(growing: Sequence[Loss]) -> Instant | None:
    first = (loss.span.first.scrape.at for loss in growing if loss.span.first is not None)
    return min((at for at in first if at is not None), default=None)


def _where(lost: Sequence[Loss]) -> str:
    partitions = sorted({loss.series.partition for loss in lost})
    numbers = f"partition{'s' * (len(partitions) > 1)} {ranges(partitions)}"
    brokers = sorted({broker_of(loss.span) for loss in lost})
    return f"{lost[0].series.topic} ({numbers}, on {listed(brokers)})"


def _suspects(cluster: ClusterView, cases: Sequence[Case]) -> Suspects:
    counted_well: defaultdict[TopicPartition, set[str]] = defaultdict(set)
    for span in cluster.traffic_history.newest:
        for series in span.growth:
            counted_well[partition_of(series)].add(series.group)
    return {
        name: [group for group in groups if group not in counted_well[name]]
        for name, groups in owners(cases).items()
    }


def _hints(cluster: ClusterView, cases: Sequence[Case], suspects: Sequence[str]) -> list[Evidence]:
    """Which groups it can be, as far as anything tells that."""
    if len(suspects) > 1:
        return [Evidence(f"groups that have these partitions assigned: {first_of(suspects, _NAMES)}")]
    if suspects or members_are_known(cases):
        return []
    uncounted = sorted(cluster.mapping_history.groups - cluster.traffic_history.labelled.keys())
    if not uncounted:
        return []
    names = f"{counted(len(uncounted), 'group')} with a node and no traffic: {first_of(uncounted, _NAMES)}"
    return [Evidence(names)]


def _remedies(cluster: ClusterView) -> list[Remedy]:
    return [
        Remedy(f"Compare the members of all groups with {NODES}.", commands.mappings("check", cluster)),
        RECONNECT,
    ]


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "has traffic that is counted to no group",
        "have traffic that is counted to no group",
        "traffic that was counted to no group",
    ),
    judge_cluster=judge,
)
