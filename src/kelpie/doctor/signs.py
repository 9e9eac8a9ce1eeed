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
    """Its offsets partition had no leader, or brokers differ about the leader, or logs tell of it, or nobody
    knows the leader.
    """
    HOME_LEADERLESS = 1 << 4
    """Its offsets partition has no living leader, and no log tells of it."""
    HOME_BELOW_MIN_INSYNC = 1 << 5
    """Its offsets partition takes no commit. Unlike the others, it is only set where brokers show it."""
    COMMITTED_LATELY = 1 << 6
    """Within the last minute. It, too, is only set where a commit shows it."""
    LOOKED_UP = 1 << 7
    """Brokers were asked who its coordinator is, and named one."""
    NOT_AUTHORISED = 1 << 8
    """A broker refused to answer for want of a permission."""
    LOADING = 1 << 9
    """The coordinator answered that it is loading."""
    DISOWNED = 1 << 10
    """The broker that is taken for its coordinator answered that it is not."""
    NO_REPLY = 1 << 11
    # Its members.
    NOT_DESCRIBED = 1 << 12
    MEMBERS = 1 << 13
    """It has members, or had some."""
    MEMBERS_UNKNOWN = 1 << 14
    REBALANCING = 1 << 15
    """Now, or at an earlier look."""
    MANY_GENERATIONS = 1 << 16
    HISTORY_READ = 1 << 17
    """The offsets topic was. It, too, is only set where the rows show it."""
    SEEN_ONCE = 1 << 18
    """The offsets topic was not read, and no two surveys saw its offsets."""
    NOT_CLASSIC = 1 << 19
    SETTINGS = 1 << 20
    """Settings of its consumers are known."""
    SIZE_LIMIT = 1 << 21
    """It has as many members as the brokers allow, or how many they allow is not known."""
    # What it reads.
    NOTHING_READ = 1 << 22
    NOT_TRACKED = 1 << 23
    """Members read a partition in which nothing is committed."""
    UNCOMMITTED = 1 << 24
    """A partition of a topic that it reads has no committed offset."""
    OFFSETS_UNKNOWN = 1 << 25
    NO_OFFSETS = 1 << 26
    OFFSET_REFUSED = 1 << 27
    """The coordinator told an error in place of an offset, or that an offset was removed."""
    UNTOLD_OFFSET = 1 << 28
    """Commits or earlier looks have an offset that the coordinator does not tell now."""
    TOPIC_IN_DOUBT = 1 << 29
    """A topic is gone, hidden, or not known."""
    ANOTHER_TOPIC = 1 << 30
    """A commit is of an earlier topic of the same name, or the topic was created again."""
    TOPIC_UNPROVEN = 1 << 31
    """Nothing tells in which of two topics of the same name an offset was committed."""
    LEADERLESS = 1 << 32
    """A partition that it reads has no living leader, or nobody knows."""
    # Where it stands.
    NOT_AT_ENDS = 1 << 33
    """A committed offset is not exactly the end of its log."""
    BEHIND = 1 << 34
    HELD_BACK = 1 << 35
    """The last stable offset of a partition is before its end, or unknown."""
    NO_ENDS = 1 << 36
    """Where a log begins or ends is not known."""
    BELOW_START = 1 << 37
    BEYOND_END = 1 << 38
    MOVED_BACK = 1 << 39
    REMOVED = 1 << 40
    """The history has a removed offset."""
    EPOCH_DIFFERS = 1 << 41
    """A commit was made in another leader epoch than the present one, and the log may have lost it."""
    NO_EPOCH = 1 << 42
    """A commit carries no leader epoch."""


ALL = (1 << 43) - 1
POSITION_OPEN = (
    Sign.BEHIND
    | Sign.NO_ENDS
    | Sign.NOTHING_READ
    | Sign.NOT_TRACKED
    | Sign.OFFSET_REFUSED
    | Sign.ANOTHER_TOPIC
)
"""Without these, the group has read everything in each partition that it reads."""
