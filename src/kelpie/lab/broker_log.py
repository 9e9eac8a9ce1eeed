"""The logs of the lab's brokers: what their group coordinators do, in Kafka's own words and layout.

    [2026-11-15 20:56:49,508] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=32] Stabilized
    group checkout-344 generation 2 with 2 members. (org.apache.kafka.coordinator.group.GroupMetadataManager)

on one line. One file a broker, broker-1.log and so on; a broker that comes back goes on writing to its own.
Times are UTC.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from kelpie.broker.image import OFFSETS_TOPIC
from kelpie.coordinator.notes import Note, NoteKind
from kelpie.lab.lab_errors import LabError
from kelpie.lab.log_words import STARTED, STOPPED, words_of
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


class BrokerLogs:
    """Raises LabError where the folder cannot be written to."""

    def __init__(self, folder: Path, persona: str, node_ids: Iterable[int]) -> None:
        self._words = words_of(persona)
        self._files: dict[int, TextIO] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for node_id in node_ids:
                # Line by line, so that a reader sees all that has happened so far.
                self._files[node_id] = (folder / f"broker-{node_id}.log").open(
                    "a", encoding="utf-8", buffering=1
                )
        except OSError as error:
            self.close()
            raise LabError(f"The logs cannot be written to {folder}: {error.strerror}.") from None

    def write(self, node_id: int, partition: TopicPartition, note: Note, now: Instant) -> None:
        if partition.topic != OFFSETS_TOPIC:
            return
        if note.kind is NoteKind.EXPIRED and not note.values["tombstones"]:
            return  # Kafka checks every ten minutes, and mostly finds nothing to log.
        self._put(node_id, self._words.of(node_id, partition.partition, note), now)

    def started(self, node_id: int, now: Instant) -> None:
        self._put(node_id, self._words.of_broker(node_id, STARTED), now)

    def stopped(self, node_id: int, now: Instant) -> None:
        self._put(node_id, self._words.of_broker(node_id, STOPPED), now)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _put(self, node_id: int, lines: Iterable[str], now: Instant) -> None:
        file = self._files.get(node_id)
        if file is not None:
            file.writelines(f"[{_time(now)}] {line}\n" for line in lines)


def _time(now: Instant) -> str:
    return datetime.fromtimestamp(now // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") + f",{now % 1000:03}"
