"""Signs: what one look over the rows of a group shows. A rule names those for which it is asked.

`glances` finds them. A sign too many costs time; a sign that is missing would hide a fault. So in doubt a
sign is set: for rows without a time, for another topic of the same name, for a group of another kind.
"""

LATELY_MS = 60_000
FEWEST_IN_A_STORM = 8
"""Generations; KLP201 looks at no fewer."""


class Sign:
    """Bits. A sign is also set where the rows do not exclude it."""

    LOG_LINES = 1 << 0
    """Lines of logs name the group."""
    CLUSTER_LOG_LINES = 1 << 1
    """Lines of logs are about brokers and partitions."""
    LISTED_TWICE = 1 << 2
    """More than one broker lists it."""
    # Its coordinator.
    HOME_IN_DOUBT = 1 << 3
    """Its offsets partition has, or had, no leader, or brokers differ about it, or logs tell of it."""
    HOME_NOT_IN_SYNC = 1 << 4
    """A replica of its offsets partition is dead, or not in sync."""
    COMMITTED_LATELY = 1 << 5
    """Within the last minute. Unlike the others, it is only set where a commit shows it."""
    LOOKED_UP = 1 << 6
    """Brokers were asked who its coordinator is."""
    REFUSED = 1 << 7
    """The coordinator answered with an error."""
    NO_REPLY = 1 << 8
    # Its members.
    NOT_DESCRIBED = 1 << 9
    MEMBERS = 1 << 10
    """It has members, or had some."""
    MEMBERS_UNKNOWN = 1 << 11
    REBALANCING = 1 << 12
    """Now, or at an earlier look."""
    MANY_GENERATIONS = 1 << 13
    NO_HISTORY = 1 << 14
    """The offsets topic was not read."""
    NOT_CLASSIC = 1 << 15
    SETTINGS = 1 << 16
    """Settings of its consumers are known."""
    SIZE_LIMIT = 1 << 17
    """It has as many members as the brokers allow, or how many they allow is not known."""
    # What it reads.
    NOTHING_READ = 1 << 18
    NOT_TRACKED = 1 << 19
    """Members read a partition in which nothing is committed."""
    UNCOMMITTED = 1 << 20
    """A partition of a topic that it reads has no committed offset."""
    OFFSETS_UNKNOWN = 1 << 21
    NO_OFFSETS = 1 << 22
    OFFSET_REFUSED = 1 << 23
    """The coordinator told an error in place of an offset, or that an offset was removed."""
    UNTOLD_OFFSET = 1 << 24
    """Commits or earlier looks have an offset that the coordinator does not tell now."""
    TOPIC_IN_DOUBT = 1 << 25
    """A topic is gone, hidden, or not known."""
    ANOTHER_TOPIC = 1 << 26
    """A commit is of an earlier topic of the same name, or the topic was created again."""
    TOPIC_UNPROVEN = 1 << 27
    """Nothing tells in which of two topics of the same name an offset was committed."""
    LEADERLESS = 1 << 28
    """A partition that it reads has no living leader, or nobody knows."""
    # Where it stands.
    BEHIND = 1 << 29
    HELD_BACK = 1 << 30
    """The last stable offset of a partition is before its end, or unknown."""
    NO_ENDS = 1 << 31
    """Where a log begins or ends is not known."""
    BELOW_START = 1 << 32
    BEYOND_END = 1 << 33
    MOVED_BACK = 1 << 34
    REMOVED = 1 << 35
    """The history has a removed offset."""
    EPOCH_DIFFERS = 1 << 36
    """A commit was made in another leader epoch than the present one, and the log may have lost it."""
    NO_EPOCH = 1 << 37
    """A commit carries no leader epoch."""


ALL = (1 << 38) - 1
POSITION_OPEN = (
    Sign.BEHIND
    | Sign.NO_ENDS
    | Sign.NOTHING_READ
    | Sign.NOT_TRACKED
    | Sign.OFFSET_REFUSED
    | Sign.ANOTHER_TOPIC
)
"""Without these, the group has read everything in each partition that it reads."""
