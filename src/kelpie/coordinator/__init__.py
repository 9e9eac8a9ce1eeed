"""The broker side of groups and transactions, as machines without input or output.

`classic/` holds classic groups. The modules above it hold what groups of every kind share: the shard, offsets
and their expiry, records and outcomes. group.py is what these ask of a group, and says how to add a kind.
`transactions/` is the transaction coordinator.

`GroupShard` (shard.py) holds all groups and offsets of one partition of `__consumer_offsets`; the broker that
leads the partition drives it. Every event takes `now` and returns an `Outcome` (outcome.py), which the driver
carries out. `to` is the driver's token for a call: it comes back in the reply.

    shard = GroupShard(GroupConfig(), BEHAVIOUR_4_3, new_id)   # new_id() makes a UUID as text

Loading: replay the log into a fresh shard, then `loaded`. The same `replay` serves the live shard: the driver
calls it for each record that it has written, once the high watermark has passed it.

    replay(key, value, *, offset, producer_id=-1) -> None
    replay_marker(producer_id, committed) -> None              # a COMMIT or ABORT control batch
    loaded(now) -> Outcome            # sets the timers of sessions and of the expiry
    unloaded() -> Outcome             # answers every parked call NOT_COORDINATOR; the shard is done
    timer(key, now) -> Outcome        # a Timer of an earlier outcome is due
    expire(now) -> Outcome            # also runs by itself, as a timer
    topic_deleted(topics, now) -> Outcome

Requests. The driver has checked before that this broker coordinates the group (errors 14, 15, 16), that the
topics exist, and that the caller is allowed. It has filled in both name and id of each topic (Kafka 4.1 and
later store the id).

    join(to, request, version, client_id, client_host, now)    -> JoinGroupResponse
    sync(to, request, version, now)                            -> SyncGroupResponse
    heartbeat(to, request, version, now)                       -> HeartbeatResponse
    leave(to, request, version, now)                           -> LeaveGroupResponse
    commit_offsets(to, request, version, now)                  -> OffsetCommitResponse
    commit_offsets_in_transaction(to, request, version, now)   -> TxnOffsetCommitResponse
    fetch_offsets(to, group, require_stable, now)              -> OffsetFetchResponseGroup, one group's part
    delete_group(to, group_id, now)                            -> DeletableGroupResult, one group's part
    delete_offsets(to, request, now)                           -> OffsetDeleteResponse

Each returns an Outcome, whose reply carries the response behind the arrow. These answer at once, without an
Outcome:

    offsets_of(group_id, topics_or_None, require_stable) -> OffsetFetchResponseGroup
    describe(group_id, version) -> DescribedGroup
    listed(states=(), types=()) -> list[ListedGroup]

Versions of OffsetFetch differ. offset_fetch.py translates: `groups_asked(request, version)` gives the
groups of any request, `response_of(groups, version)` puts their parts together, `refused(group, error,
version)` is the part of a group that this broker does not answer for.

`client_host` is stored as it is given; Kafka writes "/127.0.0.1", with the slash.
"""
