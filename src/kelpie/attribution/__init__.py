"""Which group a fetch is for: the mapping from a client's address to its group, and plans that keep it.

A Fetch request names a client id and no group. KoP (Kafka on Pulsar) therefore keeps a mapping in ZooKeeper,
written by one broker, read by the others, and exports what consumers read by topic, partition and group.
docs/attribution.md tells how the mapping gets lost, and what each plan does about that.

Everything here is a machine without input or output: time and answers of the store are arguments.
"""
