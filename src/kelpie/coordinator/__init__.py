"""The broker side of consumer groups, as machines without input or output.

`GroupShard` (shard.py) holds all groups and offsets of one partition of `__consumer_offsets`; the broker that
leads the partition drives it. Every event takes `now` and returns an `Outcome` (outcome.py), which the driver
carries out. `to` is the driver's token for a call: it comes back in the `Reply`.

    shard = GroupShard(GroupConfig(), MANNERS_4_3, new_id)     # config.py, manners.py; new_id() -> uuid text

Loading: replay the log into a fresh shard, then `loaded`. The same `replay` serves the live shard: the driver
calls it for each record that it has written, once the high watermark has passed it.

    replay(key, value, *, offset, producer_id=-1) -> None
    replay_marker(producer_id, committed) -> None              # a COMMIT or ABORT control batch
    loaded(now) -> Outcome            # sets the session timers, and that of the expiry
    unloaded() -> Outcome             # answers every parked call NOT_COORDINATOR; the shard is done
    timer(key, now) -> Outcome        # a Timer of an earlier outcome is due
    expire(now) -> Outcome            # also runs by itself, as a timer
    topic_deleted(topics, now) -> Outcome

Requests. Whether this broker coordinates the group (14, 15, 16), topics exist and the caller may, is checked
before; names and ids of topics are both filled in (Kafka 4.1 and later store the id).

    join(to, request, version, client_id, client_host, now)    -> JoinGroupResponse
    sync(to, request, version, now)                            -> SyncGroupResponse
    heartbeat(to, request, version, now)                       -> HeartbeatResponse
    leave(to, request, version, now)                           -> LeaveGroupResponse
    commit_offsets(to, request, version, now)                  -> OffsetCommitResponse
    commit_offsets_in_transaction(to, request, version, now)   -> TxnOffsetCommitResponse
    fetch_offsets(to, group, require_stable, now)              -> OffsetFetchResponseGroup, one group's part
    delete_group(to, group_id, now)                            -> DeletableGroupResult, one group's part
    delete_offsets(to, request, now)                           -> OffsetDeleteResponse

Each returns an Outcome, whose reply carries what stands behind the arrow. An answer at once, without Outcome:

    offsets_of(group_id, topics_or_None, require_stable) -> OffsetFetchResponseGroup
    describe(group_id, version) -> DescribedGroup
    listed(states=(), types=()) -> list[ListedGroup]

OffsetFetch has had several shapes. fetching.py translates: `groups_asked(request, version)` gives the groups
of any request, `response_of(groups, version)` puts their parts together, `refused(group, error, version)` is
the part of a group that may not be asked here.

`client_host` is stored as it is given; Kafka writes "/127.0.0.1", with the slash.
"""
