"""A scratch group on the same offsets partition as the user's group.

Both have the same coordinator and the same partition, so what works for one works for the other; the user's
group does not change. The probe leaves and deletes the scratch group. Kafka before 1.1 cannot delete groups:
0.9 forgets a group with its last member, later releases at the next clean-up, because nothing is committed.
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
