"""KLP108 offsets-topic-not-compacted

What it sees: a partition of __consumer_offsets is several times as large as its live
records, or the topic is not set to be compacted.

Why it matters: whoever becomes the leader of the partition reads all of it before it
answers: no join, no commit, no committed offset until then (KLP102). With some
gigabytes that is minutes, with hundreds of them hours. It comes at the next restart
or failure of a broker, and to all groups of the partition at once. With
cleanup.policy=delete, offsets that are older than retention.ms are lost as well.

How it decides: the size of each partition on the disk of its leader, against what the
live records need at most: 300 bytes for each committed offset and 100 KB for each group
of the partition, twice (half of a log may wait for the cleaner), and three segments
that are not compacted yet. A partition of 1 GB or more, and of four times that or more,
is told. Or the topic's cleanup.policy does not name compact. How long groups would
wait is an estimate, by 10 to 100 MB a second; the broker's log has the true speed of
earlier loads ("Finished loading").

What it needs: Kafka 1.0 or later, and the right Describe on the cluster (for
DescribeLogDirs) or on the topic's settings; a look at all groups. Without
sizes, or if a large partition has groups that were not asked, it is undetermined.

What to do: see whether the log cleaner of the leader is alive: its thread dies from
one record that it cannot read, and says so once ("Error due to" in log-cleaner.log,
"uncleanable" partitions). log.cleaner.enable must be true. A restart of the broker
starts the cleaner again: restart brokers that only follow first, and wait
until their partitions shrink. Set cleanup.policy=compact.

When it is wrong: groups that the caller may not describe do not count, so many of
them make a partition look too large. Very large groups have more than 100 KB.

Reproduce: kelpie lab run offsets-topic-not-compacted
"""

from collections.abc import Sequence

from kelpie.cluster import ClusterView, commands
from kelpie.cluster.offsets_sizes import LARGE
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.model.names import TopicPartition
from kelpie.model.words import counted, duration, first_of, numbered, ranges
from kelpie.observations import OFFSETS_TOPIC

_TIMES = 4
_NAMES = 5
_FAST, _SLOW = 100 << 20, 10 << 20
"""Bytes that a coordinator loads in a second: from a quick disk with much to skip, and from a slow one."""
_SIZES = "the sizes of __consumer_offsets (DescribeLogDirs: Kafka 1.0, the right Describe on the cluster)"


def judge(cluster: ClusterView, cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    findings = [_wrong_policy(cluster)] if _is_not_compacted(cluster) else []
    swollen = [
        name
        for name, most in cluster.compacted_bytes.items()
        if cluster.sizes[name].size >= max(LARGE, _TIMES * most)
    ]
    if swollen and not cluster.all_groups and not findings:
        return undetermined("all groups: those that were not asked for may need the space")
    if swollen:
        findings.append(_swollen(cluster, swollen, cases))
    if findings or cluster.sizes:
        return findings or ABSENT
    return undetermined(_SIZES) if cluster.offsets_partitions else ABSENT


def _policy(cluster: ClusterView) -> str:
    return cluster.settings.get((f"topic {OFFSETS_TOPIC}", "cleanup.policy"), "")


def _is_not_compacted(cluster: ClusterView) -> bool:
    return "compact" not in (_policy(cluster) or "compact")


def _wrong_policy(cluster: ClusterView) -> Finding:
    policy = _policy(cluster)
    return RULE.finding(
        Severity.WARNING,
        None,
        f"Groups will lose their committed offsets, and wait long for their coordinator after a failover: "
        f"{OFFSETS_TOPIC} has cleanup.policy={policy} and is not compacted.",
        why="Records are deleted by age, also the only record of an offset that is still needed; until then "
        "every commit is kept, and read when a coordinator moves.",
        evidence=[Evidence(f"cleanup.policy={policy}", f"settings of {OFFSETS_TOPIC}")],
        remedies=[_compact(cluster)],
        cause="cleanup.policy",
        check=_settings(cluster),
    )


def _settings(cluster: ClusterView) -> str:
    return commands.kafka(
        "kafka-configs", cluster, "--describe", "--entity-type", "topics", "--entity-name", OFFSETS_TOPIC
    )


def _compact(cluster: ClusterView) -> Remedy:
    words = ("--alter", "--entity-type", "topics", "--entity-name", OFFSETS_TOPIC)
    return Remedy(
        "Have it compacted, as brokers do when they create it.",
        commands.kafka("kafka-configs", cluster, *words, "--add-config", "cleanup.policy=compact"),
    )


def _swollen(cluster: ClusterView, names: Sequence[TopicPartition], cases: Sequence[Case]) -> Finding:
    names = sorted(names, key=lambda name: -cluster.sizes[name].size)
    largest = cluster.sizes[names[0]].size
    hit = sorted(case.group for case in cases if case.offsets_partition in names)
    leaders = sorted({cluster.sizes[name].node for name in names})
    whom = f"{counted(len(hit), 'group')} ({first_of(hit, _NAMES)})" if hit else "Its groups"
    is_off = cluster.setting("log.cleaner.enable") == "false"
    many = len(names) > 1
    numbers = ranges([name.partition for name in names])
    return RULE.finding(
        Severity.WARNING,
        None,
        f"{whom} will wait for about {duration(1000 * largest / _FAST)} to "
        f"{duration(1000 * largest / _SLOW)} when {'a' if many else 'the'} coordinator moves: "
        f"{'partitions' if many else 'partition'} {numbers} of {OFFSETS_TOPIC} "
        f"{'have' if many else 'has'} up to {_bytes(largest)} and {'are' if many else 'is'} not compacted"
        + (": log.cleaner.enable is false." if is_off else "."),
        why="A new leader reads the whole partition before it answers, and consumers can neither join nor "
        "commit until then.",
        evidence=[
            Evidence.of(
                cluster.sizes[name],
                f"{name}: {_bytes(cluster.sizes[name].size)} on broker {cluster.sizes[name].node}; compacted "
                f"it has {_bytes(cluster.compacted_bytes[name])} at most",
            )
            for name in names[:_NAMES]
        ],
        remedies=[
            Remedy("Set log.cleaner.enable=true on all brokers, and restart them one by one.")
            if is_off
            else Remedy(
                f"Look for the log cleaner in the logs of {numbered('broker', leaders)} (log-cleaner.log): "
                '"Error due to" means that its thread has ended.'
            ),
            Remedy(
                "A restart starts the cleaner again. Restart a broker that only follows these partitions "
                "first, and wait until they have shrunk on its disk. Do not restart their leader before: its "
                "groups would wait."
            ),
        ],
        cause="size",
        brokers=leaders,
        partitions=names,
        check=commands.kafka("kafka-log-dirs", cluster, "--describe", "--topic-list", OFFSETS_TOPIC),
    )


def _bytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


RULE = Rule.of(
    __name__,
    presentation=Presentation(
        "will wait long for its coordinator", "will wait long for their coordinators", is_risk_alone=True
    ),
    judge_cluster=judge,
)
