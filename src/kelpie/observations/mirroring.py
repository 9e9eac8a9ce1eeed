"""Whether a cluster is the target of MirrorMaker: which topics it would have there.

MirrorMaker 2 writes the groups' offsets of the source cluster, translated, to the target. They may run ahead
of the records, which another connector copies. Its checkpoint connector keeps them in the topic
`<alias of the source>.checkpoints.internal` on the target. A copied topic is called `<alias>.<name>`, unless
the replication policy keeps names; then the worker group `<alias>-mm2` may name the alias.
"""

from collections.abc import Iterable

CHECKPOINTS, HEARTBEATS = ".checkpoints.internal", ".heartbeats"
_WORKERS = "-mm2"
_MOST = 200


def aliases_in(topic: str) -> list[str]:
    """What the alias of its source would be, if the topic was copied: "us.west.orders" → "us", "us.west"."""
    parts = topic.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def signs_of_mirroring(topics: Iterable[str], groups: Iterable[str]) -> list[str]:
    """Topics to ask for: if one of them is there, MirrorMaker writes to this cluster."""
    aliases = dict.fromkeys(alias for topic in topics for alias in aliases_in(topic))
    aliases |= dict.fromkeys(group.removesuffix(_WORKERS) for group in groups if group.endswith(_WORKERS))
    return [alias + sign for alias in list(aliases)[:_MOST] for sign in (CHECKPOINTS, HEARTBEATS)]


def is_sign(topic: str) -> bool:
    return topic.endswith((CHECKPOINTS, HEARTBEATS))
