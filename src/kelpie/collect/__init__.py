"""`kelpie collect`: looks at a cluster again and again, and keeps each look as a file in a landing folder.

collecting  round after round, until somebody says stop
survey      one round: a survey as one file; what rounds remember of each other
landing     the folder: whole files only, one collector at a time, bounded in disk
zookeeper   one round on ZooKeeper: Kafka's nodes as one file

What reads the files: `evidence.snapshot_files`, `evidence.zookeeper_dumps`.
"""
