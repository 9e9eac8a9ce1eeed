"""New names for groups whose partition has no leader."""

from itertools import islice

from hypothesis import example, given
from hypothesis import strategies as st

from kelpie.cluster import ClusterView
from kelpie.cluster.health import Health, health_of
from kelpie.model.names import TopicPartition
from kelpie.model.partitioning import partition_for
from kelpie.observations import OFFSETS_TOPIC, BrokerView, PartitionView
from kelpie.repair.group_names import candidates, healthy_names, is_candidate

States = list[tuple[int, tuple[int, ...]]]
"""(leader, ISR) of each partition of the offsets topic."""


def a_view(states: States, alive: set[int]) -> ClusterView:
    nodes = alive | {node for leader, isr in states for node in (leader, *isr)} - {-1}
    return ClusterView(
        now=0,
        brokers={node: BrokerView(node, alive=node in alive) for node in nodes},
        views={
            TopicPartition(OFFSETS_TOPIC, at): (PartitionView(OFFSETS_TOPIC, at, leader, isr, isr),)
            for at, (leader, isr) in enumerate(states)
        },
        offsets_partitions=len(states),
    )


_STATES = st.lists(
    st.tuples(st.sampled_from([-1, 1, 2, 3]), st.lists(st.sampled_from([1, 2, 3]), unique=True).map(tuple)),
    min_size=1,
    max_size=70,
)


@given(st.text(min_size=1, max_size=30), _STATES, st.sets(st.sampled_from([1, 2, 3])))
def test_every_proposed_name_lives_on_the_healthiest_kind_of_partition(
    group: str, states: States, alive: set[int]
) -> None:
    """A name that lands on another partition without a leader would help nobody."""
    cluster = a_view(states, alive)
    proposed = list(islice(healthy_names(group, cluster), 3))
    best = max(health_of(cluster, TopicPartition(OFFSETS_TOPIC, at)) for at in range(len(states)))
    assert bool(proposed) == best.is_led
    for name in proposed:
        partition = partition_for(name, len(states))
        assert health_of(cluster, TopicPartition(OFFSETS_TOPIC, partition)) == best
        leader, in_sync = states[partition]
        assert leader in alive
        assert best is Health.AT_RISK or len(alive & set(in_sync)) > 1
        assert name != group


@example("1\U000660227Ô1\x14", 31, 0)
@given(st.text(max_size=8), st.integers(1, 130), st.integers(0))
def test_any_single_healthy_partition_is_reached(group: str, count: int, only: int) -> None:
    """Also where the number of partitions is a multiple of 31, which hides nearly all but the last letter."""
    only %= count
    states: States = [(1, (1, 2)) if at == only else (-1, ()) for at in range(count)]
    name = next(healthy_names(group, a_view(states, {1, 2})))
    assert only == partition_for(name, count)


def test_the_sequence_of_names_is_always_the_same() -> None:
    """Running a repair again must come to the same name."""
    assert list(islice(candidates("billing"), 3)) == ["billing-2", "billing-3", "billing-4"]
    assert all(is_candidate(name, "billing") for name in candidates("billing"))
    for other in ("billing", "billing-", "billing-2-3", "billing-x", "invoices-2"):
        assert not is_candidate(other, "billing")


def test_partitions_with_a_second_copy_are_preferred() -> None:
    """Else the next dead broker hits the group again."""
    states: States = [(1, (1,))] * 49 + [(1, (1, 2))]
    name = next(healthy_names("billing", a_view(states, {1, 2})))
    assert partition_for(name, 50) == 49
