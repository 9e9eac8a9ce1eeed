"""Groups of ZooKeeper consumers on a virtual clock: the same machine, a simulated ZooKeeper, one seed.

tree.py     ZooKeeper's nodes, sessions and watches, without time
server.py   the same with time: latency, ticks, expiry, a server that stops
group.py    a group with its topics, brokers and ZooKeeper
events.py   what happens to a group; trials.py: many seeded runs of it
member.py   a process with one consumer: drives the machine; can be killed, stopped, closed
"""
