"""The brokers' logs. Their words are compared with real brokers in tests/lab/personas/test_broker_log.py."""

import re
import string
from pathlib import Path

import pytest

from kelpie.broker.personas import RELEASES
from kelpie.coordinator.notes import NoteKind, note
from kelpie.evidence import read_evidence
from kelpie.lab import LabError, SyncCluster
from kelpie.lab.broker_log import STARTED, STOPPED, BrokerLogs, words_of
from kelpie.model.names import TopicPartition
from kelpie.observations import EventKind

OFFSETS = TopicPartition("__consumer_offsets", 7)
_LAYOUT = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (INFO|WARN|ERROR) .+ \([\w.]+\)")


@pytest.mark.parametrize("persona", RELEASES)
def test_every_word_is_said_of_something(persona: str) -> None:
    """Names in the files are names of notes, and what stands in braces is a word that notes use."""
    words = words_of(persona)
    assert set(words.lines) <= {*NoteKind.__members__, STARTED, STOPPED}
    assert {STARTED, STOPPED, "REBALANCE_BEGAN", "GENERATION_BEGAN", "LOADING"} <= set(words.lines)
    reasons = {name for name in NoteKind.__members__ if name.startswith("BY_")}
    assert persona == "0.9" or set(words.reasons) == reasons
    known = "node partition group member instance option generation state members count client_reason reason"
    known += " old owner during static offsets tombstones topic epoch records bytes ms error limit"
    known += " client host session_ms rebalance_ms protocols"
    for line in (*(each.template for own in words.lines.values() for each in own), *words.reasons.values()):
        used = {name for _, name, _, _ in string.Formatter().parse(line) if name is not None}
        assert used <= set(known.split()), line


def test_each_broker_has_a_file_of_its_own_and_goes_on_with_it(tmp_path: Path) -> None:
    """What happens to a cluster can be read from its logs afterwards, by what reads real ones."""
    with SyncCluster(2, persona="4.3", log_folder=tmp_path / "logs", offsets_partitions=2) as cluster:
        cluster.create_topic("__consumer_offsets", 2, 2)
        cluster.kill(2)
        cluster.start(2)
        cluster.stop(2)
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files] == ["broker-1.log", "broker-2.log"]
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert all(_LAYOUT.fullmatch(line) for line in lines)
    events = read_evidence([tmp_path / "logs"]).events
    of_second = [event.kind for event in events if "broker-2.log" in event.source]
    assert of_second.count(EventKind.BROKER_STARTED) == 2
    assert of_second.count(EventKind.BROKER_STOPPED) == 1
    loaded = {event.partition for event in events if event.kind is EventKind.COORDINATOR_LOADED}
    assert loaded == {0, 1}


def test_nothing_to_tell_is_not_told(tmp_path: Path) -> None:
    """Expiry looks every ten minutes; and other coordinators have words of their own."""
    logs = BrokerLogs(tmp_path, "4.3", [1])
    logs.write(1, OFFSETS, note(NoteKind.EXPIRED, offsets=0, tombstones=0), 0)
    logs.write(1, TopicPartition("__transaction_state", 7), note(NoteKind.LOADING, topic="x", epoch=1), 0)
    logs.write(1, OFFSETS, note(NoteKind.UNSYNCED_REMOVED, group="g", members=["m"]), 0)
    logs.write(1, OFFSETS, note(NoteKind.EXPIRED, offsets=2, tombstones=3), 1_500)
    logs.close()
    (line,) = (tmp_path / "broker-1.log").read_text().splitlines()
    assert line.startswith("[1970-01-01 00:00:01,500] INFO [GroupCoordinator id=1 topic=__consumer_offsets ")
    assert "] Generated 3 tombstone records while cleaning up group metadata" in line


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    """Before anything has started."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(LabError, match="The logs cannot be written to"),
        SyncCluster(1, log_folder=tmp_path / "file" / "logs"),
    ):
        pass
