"""Where groups live: `kelpie where`, `kelpie names`."""

from collections.abc import Iterable, Sequence
from itertools import islice

from kelpie.api.places import PathLike, Place, paths, settings_at
from kelpie.client.nodes import Nodes
from kelpie.cluster import ClusterView, build_cluster
from kelpie.cluster.whereabouts import Whereabouts, whereabouts
from kelpie.evidence import read_evidence
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.partitioning import PROBE_PREFIX, names_on
from kelpie.observations import OFFSETS_TOPIC
from kelpie.repair.picture import survey_cluster

USUAL_PARTITIONS = 50
"""offsets.topic.num.partitions, unless somebody has set it."""


class NoOffsetsTopic(KelpieError):
    """The cluster has no __consumer_offsets, or no broker describes it."""


async def where(cluster: Place, groups: str | Iterable[str]) -> list[Whereabouts]:
    """Partition of the offsets topic, leader and health of groups, whether they exist or not.

    Raises KelpieError if no broker answers, or if there is no offsets topic.
    """
    view = await offsets_topic(cluster)
    names = [groups] if isinstance(groups, str) else groups
    return [whereabouts(view, group) for group in dict.fromkeys(names)]


async def offsets_topic(cluster: Place) -> ClusterView:
    """The brokers and the offsets topic as they are now. Raises NoOffsetsTopic, ClientError."""
    async with await Nodes.open(settings_at(cluster)) as nodes:
        view = await survey_cluster(nodes)
    if view.offsets_partitions is None:
        raise NoOffsetsTopic(f"No broker would describe {OFFSETS_TOPIC}.")
    if view.offsets_partitions == 0:
        raise NoOffsetsTopic(f"This cluster has no {OFFSETS_TOPIC} yet; see kelpie explain KLP104.")
    return view


def described_topic(file: PathLike) -> ClusterView:
    """The offsets topic as kafka-topics --describe printed it into a file. Raises NoOffsetsTopic."""
    (path,) = paths(file)
    view = build_cluster(read_evidence([path]))
    if not view.offsets_partitions:
        raise NoOffsetsTopic(
            f"{path} does not describe all partitions of {OFFSETS_TOPIC}. It should hold the output of: "
            f"kafka-topics --describe --topic {OFFSETS_TOPIC}"
        )
    return view


def names(
    partition: int, *, partitions: int = USUAL_PARTITIONS, count: int = 10, prefix: str = PROBE_PREFIX
) -> Sequence[str]:
    """Names of groups that live on a partition of the offsets topic, which has `partitions` of them.

    The same question always gets the same names. Raises KelpieError.
    """
    if not 0 <= partition < partitions:
        raise KelpieError(
            f"There is no partition {partition}: {OFFSETS_TOPIC} has {partitions}, from 0 to "
            f"{partitions - 1}."
        )
    return list(islice(names_on(partition, partitions, prefix), count))
