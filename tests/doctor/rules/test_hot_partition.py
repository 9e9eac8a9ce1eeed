"""KLP319: one partition gets most of the records."""

from collections.abc import Sequence

from kelpie.doctor.case import Case
from kelpie.doctor.causes import linked
from kelpie.doctor.finding import ABSENT, Severity
from kelpie.doctor.rules import lag_grows
from kelpie.doctor.rules.hot_partition import judge
from tests.doctor.building import (
    MINUTE,
    NOW,
    SECOND,
    a_case,
    a_cluster,
    a_committed,
    a_member,
    a_state,
    an_end,
    commits,
    found,
    looks,
    missing,
)


def _case(writes: Sequence[int], reads: Sequence[int], *, minutes: int = 30, until: int = NOW) -> Case:
    """Records a second, partition by partition. `until`: the last commit."""
    first = NOW - minutes * MINUTE
    history, ends = [], []
    for partition, (written, read) in enumerate(zip(writes, reads, strict=True)):
        times = range(first, until + 1, 5 * SECOND)
        history += commits(*((at, read * (at - first) // SECOND) for at in times), partition=partition)
        ends += [
            an_end(written * (at - first) // SECOND, at=at, partition=partition)
            for at in range(first, NOW + 1, 5 * MINUTE)
        ]
    last = {row.partition: row.offset for row in history}
    members = [a_member(f"app-{partition}", partition) for partition in range(len(writes))]
    return a_case(
        cluster=a_cluster(ends=ends),
        commits=history,
        states=[a_state("Stable", *members)],
        history_from=first,
        **looks(*(a_committed(offset, partition=partition) for partition, offset in last.items())),
    )


def test_one_partition_with_most_of_the_records_and_all_of_the_lag_is_hot() -> None:
    case = _case([90, 5, 5], [40, 5, 5])
    finding = found(judge(case))
    assert finding.severity is Severity.WARNING
    assert finding.partitions == ("orders-0",)
    assert "90% of the records of orders go there (90 records a second;" in finding.summary
    effect, cause = linked([found(lag_grows.judge(case)), finding])
    assert effect.caused_by == (cause.id,)


def test_what_came_since_the_last_commit_is_no_lag_of_the_others() -> None:
    """Seen on 4.3.1: between two commits every partition has some records that nobody has committed yet."""
    assert found(judge(_case([90, 5, 5], [40, 5, 5], until=NOW - 15 * SECOND))).partitions == ("orders-0",)


def test_an_even_topic_is_not_hot() -> None:
    """Near miss: one member alone is slow."""
    assert judge(_case([30, 30, 30], [10, 30, 30])) is ABSENT


def test_a_hot_partition_that_is_read_to_the_end_is_no_finding() -> None:
    """Near miss: the member keeps up."""
    assert judge(_case([90, 5, 5], [90, 5, 5])) is ABSENT


def test_a_group_that_is_behind_everywhere_is_no_finding() -> None:
    """Near miss: KLP318 tells it."""
    assert judge(_case([90, 5, 5], [40, 1, 1])) is ABSENT


def test_a_few_minutes_are_too_little() -> None:
    """Too little data."""
    assert missing(judge(_case([90, 5, 5], [40, 5, 5], minutes=5)))
    assert missing(judge(a_case()))
