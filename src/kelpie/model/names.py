import re
from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        """Spell it as Kafka does in logs and directory names: "orders-3"."""
        return f"{self.topic}-{self.partition}"


_SCRATCH = re.compile(r"kelpie-probe-[0-9a-f]{8}-\d+")


def scratch_group(token: str, number: int) -> str:
    """The name of a group that `kelpie probe` makes for a moment. `token` has eight hexadecimal digits."""
    return f"kelpie-probe-{token}-{number}"


def is_scratch_group(name: str) -> bool:
    """Whether a probe made it: nobody consumes with it, and the offsets topic remembers it for a while."""
    return _SCRATCH.fullmatch(name) is not None
