"""The broker side of groups and transactions, as machines without input or output.

`classic/` holds classic groups. The modules above it hold what groups of every kind share: the shard, offsets
and their expiry, records and outcomes. group.py is what these ask of a group, and says how to add a kind.
`transactions/` is the transaction coordinator.

`GroupShard` (shard.py) holds all groups and offsets of one partition of `__consumer_offsets`; the broker that
leads the partition drives it. Every event takes `now` and returns an `Outcome` (outcome.py), which the driver
carries out. `to` is the driver's token for a call: it comes back in the reply.

    shard = GroupShard(GroupConfig(), BEHAVIOUR_4_3, new_id)   # new_id() makes a UUID as text

Loading: `replay` the log into a fresh shard, then `loaded`. The same `replay` serves the live shard: the
driver calls it for each record that it has written, once the high watermark has passed it. `unloaded` ends
the shard, and `timer` runs when a Timer of an earlier outcome is due.

Before a request the driver has checked that this broker coordinates the group (errors 14, 15, 16), that the
topics exist, and that the caller is allowed. It has filled in both name and id of each topic (Kafka 4.1 and
later store the id). The reply in the Outcome carries the response of the API; of OffsetFetch and DeleteGroups
it is one group's part. `offsets_of`, `describe` and `listed` answer at once, without an Outcome.

Versions of OffsetFetch differ. offset_fetch.py translates: `groups_asked(request, version)` gives the
groups of any request, `response_of(groups, version)` puts their parts together, `refused(group, error,
version)` is the part of a group that this broker does not answer for.

`client_host` is stored as it is given; Kafka writes "/127.0.0.1", with the slash.
"""
