"""Readers of files: logs, outputs of tools, configurations, log segments, snapshots. No cluster is asked.

    from kelpie.evidence import read_evidence
    observations = read_evidence(["incident/"])

folder      everything below some paths; what each file is; what could not be used
files       finds files in folders and archives (`archives`)
segments    log segments off disks of brokers
logs/       logs of clients and brokers
describes/  outputs of Kafka's tools
properties  configurations of brokers and clients
dating      when an output was made, and on which day a log was written
snapshots   those that `kelpie collect` took (`snapshot_files`: their format; `snapshot_choice`: which count)
assembly    what the doctor and the pipeline share in putting evidence together
zookeeper_dumps  what Kafka keeps in ZooKeeper
mapping_dumps    KoP's mapping of clients to groups, listed in ZooKeeper
kop_scrapes      traffic by group in scrapes of brokers with KoP (`scrapes`: the text format)
"""

from kelpie.evidence.archives import Budget
from kelpie.evidence.folder import read_evidence

__all__ = ["Budget", "read_evidence"]
