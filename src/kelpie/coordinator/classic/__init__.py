"""Classic groups: members join, a leader among them assigns the partitions, all of them sync.

group, member, state   what a group and its members are; which state may follow which; the groups of a shard
join, sync             JoinGroup and SyncGroup
membership             Heartbeat, LeaveGroup, the end of a session
static_members         an instance that comes back under a new member id (KIP-345)
rebalance              how a rebalance begins, waits, and ends in a new generation
lifecycle              loading, unloading, timers
records, responses     the group as a record, as an answer to a member, as DescribeGroups shows it

The modules above this package (offsets, expiry, lists of groups) see a classic group as a `Group` (group.py
of the coordinator).
"""
