"""What is known of groups on partitions, as rows for `verdicts`: of which form they are, and names of topics.

kind       is_certain  an interval in which …
assigned   true        records of the offsets topic, or two surveys, say that the group had the partition
assigned   false       logs, or one survey, say so
committed  false       the committed offset of the group advanced by so many records
"""

import pyarrow as pa

from kelpie.pipeline.tables.types import BOOLEAN, INT, LONG, MOMENT, STRING

ASSIGNED, COMMITTED = "assigned", "committed"
GRACE_US = 60_000_000
"""A member that was expired may fetch on until it hears of it, and clocks differ: so long before and after an
assignment, its group is a candidate, too."""
EVIDENCE = pa.schema(
    {
        "kind": STRING,
        "is_certain": BOOLEAN,
        "topic": STRING,
        "partition": INT,
        "group": STRING,
        "began": MOMENT,
        "ended": MOMENT,
        "advance": LONG,
    }
)
DEFAULT_NAMESPACE = "persistent://public/default/"
"""Pulsar's names of topics that clients of KoP name without tenant and namespace."""


def known_as(topic: str) -> str:
    """The topic as clients name it. Topics of other namespaces keep their whole names, which differ."""
    return topic.removeprefix(DEFAULT_NAMESPACE)
