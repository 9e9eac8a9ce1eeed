"""How long an answer may be, by API: far above what the largest clusters need, and below what would do harm.

A broker announces the length of an answer before it sends it, so an answer that is too long is not gathered.
"""

KIB, MIB = 1024, 1024 * 1024

LARGEST = 256 * MIB
"""Of any answer: Fetch returns a batch whole, however large it is."""
UNASKED = MIB
"""Of a frame that answers nothing that was asked."""
_USUAL = 64 * MIB
_LIMITS = {
    1: LARGEST,  # Fetch
    3: 128 * MIB,  # Metadata: a million partitions
    9: 128 * MIB,  # OffsetFetch: thousands of groups, each with many partitions
    10: 16 * MIB,  # FindCoordinator
    12: 64 * KIB,  # Heartbeat
    13: MIB,  # LeaveGroup
    15: 128 * MIB,  # DescribeGroups: the subscriptions of all members
    17: 64 * KIB,  # SaslHandshake
    18: 256 * KIB,  # ApiVersions
    36: MIB,  # SaslAuthenticate
    55: MIB,  # DescribeQuorum
}


def largest_answer(api_key: int) -> int:
    """In bytes."""
    return _LIMITS.get(api_key, _USUAL)
