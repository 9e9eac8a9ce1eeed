"""The client side of consumer groups, as machines without input or output.

    consumer = ConsumerMachine(config, addresses, draw=random.randrange, new_id=…)
    effects = consumer.poll(now)

`kelpie.client.consumer` drives it over real connections. From the outside in:

    consumer_machine.py     puts the parts together; every event is a method
    coordinator_lookup.py   finds the coordinator
    membership/             classic.py: JoinGroup, SyncGroup, heartbeats; eager, cooperative, static
                            consumer_group.py: KIP-848
    positions/              fetch_positions.py: committed offsets, reset policy, validation
    fetcher.py              records (completed_fetch.py reads them)
    offset_commits.py       commits, on demand and automatic
    metadata.py             leaders; broker_connections.py: which broker to ask
    pending_requests.py     requests without an answer, and how answers come in
    effects.py              what follows from an event
    steps.py                what was asked, answered and done, step by step

Each part says at its top what it follows and, in a table, what it does with each error.
"""
