"""A group of the probe's own, on the same offsets partition as the user's: what holds for it holds for that.

Its coordinator, and the log it writes to, are the same; the user's group does not notice. It is left and
deleted in the end. Kafka before 1.1 cannot delete groups: 0.9 forgets one with its last member, later
releases at the next clean-up, for nothing is committed.
"""

from kelpie.model.partitioning import partition_for

PREFIX = "kelpie-probe-"


def scratch_name(token: str, partition: int, partitions: int) -> str:
    """A name with `token` in it that belongs to this partition of the offsets topic."""
    assert 0 <= partition < partitions
    number = 0
    while True:
        name = f"{PREFIX}{token}-{number}"
        if partition_for(name, partitions) == partition:
            return name
        number += 1
