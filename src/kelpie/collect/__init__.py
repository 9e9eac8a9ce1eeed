"""`kelpie collect`: surveys a cluster again and again, and keeps each survey as a file in a landing folder.

collecting  round after round, until it is stopped
survey      one round: a survey as one file; what rounds remember of each other
landing     the folder: whole files only, one collector at a time, bounded in disk
zookeeper   one round on ZooKeeper: Kafka's nodes as one file

What reads the files: `evidence.snapshot_files`, `evidence.zookeeper_dumps`.
"""
