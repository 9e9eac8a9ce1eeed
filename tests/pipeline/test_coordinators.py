"""Who led each partition of the offsets topic, as far as anybody said."""

from kelpie.doctor.case import ClusterView
from kelpie.pipeline.coordinators import outages, timeline


def test_partitions_that_nobody_spoke_of_have_no_timeline() -> None:
    """Half an archive names the topic's size and little else."""
    cluster = ClusterView(now=1, offsets_partitions=50)
    assert timeline(cluster, "c") == []
    assert outages(cluster, "c", {}) == []
