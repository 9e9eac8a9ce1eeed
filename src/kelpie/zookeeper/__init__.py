"""The consumer of Kafka 0.8, which shares partitions by way of ZooKeeper: a machine without IO.

    consumer = ZookeeperConsumer(config, consumer_id, draw=random.randrange)
    effects = consumer.start(now)

consumer_machine.py   the machine: its events, what it needs of a driver
config.py             settings, the two behaviours, subscriptions
faithful.py           the threads of Kafka 0.8.2.2, and how failures die in them
recovering.py         Kelpie's own: failures are told and mended
attempt.py            a rebalance, attempt by attempt, step by step
member.py             state, registration, commits, ownership
assignment.py         the range formula
procedures.py         procedures that wait for answers, conditions and times
requests.py           what is asked of ZooKeeper; nodes.py: paths and values
effects.py            what follows from an event
likelihood.py         how likely a rebalance of 0.8 fails, without runs of the simulator
advice.py             which settings to change to what
steps.py              what was done and seen; log_lines.py: as Kafka 0.8 logs it
"""
