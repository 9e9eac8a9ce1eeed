"""The dozen groups of the demo, and which of them an incident is for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from demo.clients import AiokafkaReader, ChoosyReader, ConfluentReader, KafkaPythonReader, Reader
from demo.shop import CLICKS, ORDERS, PAYMENTS, Shop

SLOW, AWAY, COMMITTED_ONLY = "invoices", "archive", "audit"
POLL_INTERVAL_MS = 2000
_SIMPLE: dict[str, type[Reader]] = {
    "billing": ConfluentReader,
    "shipping": KafkaPythonReader,
    "fraud-check": AiokafkaReader,
    "mailing": ConfluentReader,
    "search-index": KafkaPythonReader,
    "recommendations": AiokafkaReader,
    "warehouse": ConfluentReader,
    "loyalty": KafkaPythonReader,
    AWAY: AiokafkaReader,
}
_QUICK = {"session.timeout.ms": 1500, "heartbeat.interval.ms": 300, "max.poll.interval.ms": POLL_INTERVAL_MS}


@dataclass
class Groups:
    """All readers, by group."""

    readers: dict[str, Reader] = field(default_factory=dict)

    def add(self, reader: Reader) -> Reader:
        self.readers[reader.group] = reader
        return reader.start()

    def stop(self) -> None:
        """All at once: each takes a moment, and one without a coordinator takes the whole limit."""
        for reader in self.readers.values():
            reader.ask_to_stop()


def begin(shop: Shop, groups: Groups, logs: Path) -> None:
    """Eleven groups that read from the beginning. The twelfth comes with its incident: `counted_group`."""
    for name, library in _SIMPLE.items():
        groups.add(library(shop.bootstrap, logs, name, ORDERS))
    groups.add(ConfluentReader(shop.bootstrap, logs, SLOW, ORDERS, **_QUICK))
    committed: dict[str, Any] = {"isolation.level": "read_committed"}
    groups.add(ConfluentReader(shop.bootstrap, logs, COMMITTED_ONLY, PAYMENTS, **committed))


def counted_group(shop: Shop, logs: Path, suits: Callable[[], bool]) -> Reader:
    """A reader of clicks whose coordinator does not lead the clicks, by its name."""
    names = (f"clicks-{number}" for number in count(1))
    leader = shop.leader_of(CLICKS)
    name = next(name for name in names if shop.home_of(name)["leader"] != leader)
    return ChoosyReader(shop.bootstrap, logs, name, CLICKS, suits)
