"""Real Kafka and ZooKeeper on loopback, for tests and for a person who reproduces an incident.

The parts, from the outside in:

- `cluster.RealCluster` and `zookeeper.RealZooKeeper`: start, kill, stop, start again, close.
- `pool.Pool`: clusters that several tests share. `state`: clusters that outlive the command that began them.
- `fleet`: what both have in common, some JVMs with one folder. `process.Jvm`: one of them.
- `guardian` and `keeper`: whatever becomes of us, no JVM and no temporary folder stays behind.
- `releases`, `tools`, `properties`: what differs from one Kafka to the next. `fetch`: how its jars come here.

Nothing here imports other parts of Kelpie, so that what is tested never judges itself.
"""
