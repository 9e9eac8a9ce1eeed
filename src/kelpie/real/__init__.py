"""Real Kafka and ZooKeeper on loopback, for tests and for a person who reproduces an incident.

The parts, from the outside in:

- `cluster.RealCluster` and `zookeeper.RealZooKeeper`: start, kill, stop, start again, close.
- `pool.Pool`: clusters that several tests share. `state`: clusters that outlive the command that began them.
- `fleet`: what both have in common, some JVMs with one folder. `process.Jvm`: one of them.
- `guardian` and `keeper`: however this process ends, no JVM and no temporary folder stays behind.
- `releases`, `properties`: what differs from one Kafka to the next. `fetch`: downloads its jars.

Nothing here imports other parts of Kelpie (but `folders`), so that Kelpie is not tested against itself.
"""
