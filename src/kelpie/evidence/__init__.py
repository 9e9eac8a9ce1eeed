"""Files as witnesses: what logs, tools' outputs, configurations and log segments say, without any cluster.

    from kelpie.evidence import read_evidence
    observations = read_evidence(["incident/"])

folder      everything below some paths; what each file is; what could not be used
files       finding files in folders and archives (`archives`), whoever made them
segments    log segments off disks of brokers
logs/       logs of clients and brokers
describes/  outputs of Kafka's tools
properties  configurations of brokers
dating      when an output was made; `dateless`: on which day a log was written
surveys     snapshots that `kelpie collect` took (`collected`: their format; `looks`: which of them count)
zookeeper_dumps  what Kafka keeps in ZooKeeper
joining     states and members of a group, described by two commands, as one row
"""

from kelpie.evidence.folder import Budget, read_evidence

__all__ = ["Budget", "read_evidence"]
