from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        """Spell it as Kafka does in logs and directory names: "orders-3"."""
        return f"{self.topic}-{self.partition}"
