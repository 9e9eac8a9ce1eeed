"""How KoP reads its mapping: once per connection, and a miss counts as an answer."""

import pytest

from kelpie.attribution.plans import PLANS
from tests.attribution.cluster import P0, P1, Cluster

ON_KOPS_TREE = [name for name in PLANS if name != "incarnation"]


@pytest.mark.parametrize("plan", ["connection", "join", "coordinator"])
def test_a_miss_is_kept_as_long_as_the_connection_lasts(plan: str) -> None:
    """A consumer that fetches before its mapping is written never gets its label on that connection."""
    cluster = Cluster(plan)
    cluster.fetch(3, P0, "early")
    cluster.consumer("g", P0)
    cluster.wait(200)
    cluster.fetch(3, P0, "early")
    cluster.fetch(3, P0, "late")
    assert cluster.labels(3) == {"": 2, "g": 1}


def test_plan_three_reads_a_miss_again_after_a_minute() -> None:
    """Otherwise a repair would help new connections only, and the document says that it helped old ones."""
    cluster = Cluster("reconciled")
    cluster.fetch(3, P0, "early")
    cluster.consumer("g", P0)
    cluster.wait(30)
    cluster.fetch(3, P0, "early")
    cluster.wait(40)
    cluster.fetch(3, P0, "early")
    assert cluster.labels(3) == {"": 2, "g": 1}


@pytest.mark.parametrize("plan", ON_KOPS_TREE)
def test_a_label_is_kept_when_the_mapping_goes(plan: str) -> None:
    """A busy consumer loses nothing until its partitions move."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.fetch(3, P0, "busy")
    cluster.close(1, "find-g")
    cluster.close(2, "join-g")
    cluster.fetch(3, P1, "busy")
    assert cluster.labels(3) == {"g": 2}


@pytest.mark.parametrize("plan", ON_KOPS_TREE)
def test_fetches_wait_for_one_answer_and_are_counted_even_if_the_connection_closes(plan: str) -> None:
    """The consumer is not kept waiting; only the count is."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.delay(3)
    for partition in (P0, P1, P0):
        cluster.fetch(3, partition, "slow")
    cluster.fetch(3, P0, "other")
    assert len(cluster.delayed[3]) == 2
    cluster.close(3, "slow")
    assert cluster.labels(3) == {}
    cluster.deliver(3)
    assert cluster.labels(3) == {"g": 4}


@pytest.mark.parametrize("plan", ["connection", "join", "coordinator"])
def test_a_failed_read_counts_as_a_miss(plan: str) -> None:
    """KoP keeps the failed future in its cache."""
    cluster = Cluster(plan)
    cluster.consumer("g", P0)
    cluster.delay(3)
    cluster.fetch(3, P0, "unlucky")
    cluster.fail(3)
    cluster.fetch(3, P0, "unlucky")
    assert cluster.labels(3) == {"": 2}
