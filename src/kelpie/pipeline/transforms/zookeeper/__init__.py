"""The history of groups that ZooKeeper keeps: by logs of consumers, ZooKeeper's own log, and dumps."""
