"""KLP108: a partition of the offsets topic that a new coordinator will read for a long time."""

from collections.abc import Iterable, Sequence

from kelpie.cluster import ClusterView
from kelpie.cluster.picture import build_cluster
from kelpie.doctor.finding import ABSENT, Finding, Judgement, Severity, Undetermined
from kelpie.doctor.rules.offsets_topic_not_compacted import judge
from kelpie.errors import ErrorCode
from kelpie.observations import OFFSETS_TOPIC, Listing, LogSize, Observations, Setting
from tests.doctor.building import NOW, a_case, a_committed, an_offsets_topic
from tests.doctor.rules.kop import findings

GB = 10**9
HOME = 9
"""The partition of "billing"."""


def a_size(size: int, partition: int = HOME, error: int = 0) -> LogSize:
    return LogSize(OFFSETS_TOPIC, partition, size, 1, error=error, at=NOW, source="broker 1")


def a_view(
    *sizes: LogSize, groups: Iterable[str] = ("billing",), offsets: int = 10, **of: str
) -> ClusterView:
    """Groups that have each committed in so many partitions; settings of the offsets topic and of brokers."""
    names = list(groups)
    rows = Observations(
        partitions=an_offsets_topic(),
        sizes=list(sizes),
        listings=[Listing(1, tuple(names), ErrorCode.NONE, NOW)],
        committed=[
            a_committed(1, group=name, partition=number) for name in names for number in range(offsets)
        ],
    )
    if "policy" in of:
        rows.settings.append(Setting(f"topic {OFFSETS_TOPIC}", "cleanup.policy", of["policy"]))
    if "cleaner" in of:
        rows.settings.append(Setting("broker 1", "log.cleaner.enable", of["cleaner"]))
    return build_cluster(rows, now=NOW, bootstrap="kafka-1:9092", all_groups=True)


def _judged(view: ClusterView) -> Sequence[Finding] | Judgement:
    return judge(view, [a_case("billing", view)])


def _only(view: ClusterView) -> Finding:
    (finding,) = findings(_judged(view))
    return finding


def test_a_partition_that_is_much_larger_than_its_live_records_is_told_before_the_failover() -> None:
    view = a_view(a_size(12 * GB), a_size(40_000, 5))
    assert view.home_of("billing") == a_size(0).name
    finding = _only(view)
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "1 group (billing) will wait for about 1.91 min to 19.1 min when the coordinator moves: partition 9 "
        "of __consumer_offsets has up to 12.0 GB and is not compacted."
    )
    assert finding.partitions == (f"{OFFSETS_TOPIC}-{HOME}",)
    assert finding.brokers == (1,)


def test_a_cleaner_that_is_off_is_named() -> None:
    finding = _only(a_view(a_size(12 * GB), cleaner="false"))
    assert "log.cleaner.enable is false" in finding.summary
    assert "log.cleaner.enable=true" in finding.remedies[0].text


def test_a_partition_with_as_many_live_records_is_healthy() -> None:
    """Near miss: a thousand groups of one partition have much to keep. Below a gigabyte all is well."""
    many = [f"g-{number}" for number in range(60_000)]
    view = a_view(a_size(2 * GB, 7), groups=many, offsets=1)
    assert len([name for name in many if view.home_of(name) == a_size(0, 7).name]) > 1000
    assert _judged(view) is ABSENT
    assert _judged(a_view(a_size(2 * GB, 7))) is not ABSENT
    assert _judged(a_view(a_size(900_000_000))) is ABSENT


def test_a_topic_that_is_deleted_by_age_is_told_whatever_its_size() -> None:
    finding = _only(a_view(a_size(1000), policy="delete"))
    assert "cleanup.policy=delete" in finding.summary
    assert finding.remedies[0].command.endswith("--add-config cleanup.policy=compact")
    assert _judged(a_view(a_size(1000), policy="compact,delete")) is ABSENT


def test_without_sizes_it_is_undetermined() -> None:
    """Brokers before 1.0, or a caller who may not describe the cluster. The policy alone does not tell."""
    for view in (a_view(), a_view(a_size(-1, error=31)), a_view(policy="compact")):
        judgement = _judged(view)
        assert isinstance(judgement, Undetermined)
        assert "DescribeLogDirs" in judgement.missing[0]


def test_with_some_groups_only_a_large_partition_is_undetermined() -> None:
    """Those that were not asked for may need the space."""
    rows = Observations(partitions=an_offsets_topic(), sizes=[a_size(12 * GB)])
    judgement = judge(build_cluster(rows, now=NOW, all_groups=False), [])
    assert isinstance(judgement, Undetermined)
    assert "all groups" in judgement.missing[0]
