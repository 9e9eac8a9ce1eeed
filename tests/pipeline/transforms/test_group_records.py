"""Rows of group_metadata as observations: the same that the reader of whole segments makes of the bytes."""

from dataclasses import replace
from pathlib import Path

import pytest

from kelpie.observations.groups import Generation, GroupRemoved
from kelpie.observations.offsets_topic import OffsetsPartition
from kelpie.pipeline.decoding.group_records import group_metadata
from kelpie.pipeline.transforms.group_records import entry_of, observed_groups
from kelpie.wire.offsets_topic import RecordType
from tests.evidence import unpacked
from tests.pipeline.decoding.whole_segments import read_segment
from tests.pipeline.transforms.kip848 import two_join

Observed = dict[str, list[Generation | GroupRemoved]]


def by_reader(file: Path, topic_names: dict[bytes, str]) -> Observed:
    observed: Observed = {}
    for placed in OffsetsPartition(topic_names).read(file.read_bytes(), file.name):
        if isinstance(placed.row, Generation | GroupRemoved):
            observed.setdefault(placed.row.group, []).append(placed.row)
    return observed


def by_columns(file: Path, topic_names: dict[bytes, str]) -> Observed:
    rows, _ = group_metadata(read_segment(file).others)
    by_group: dict[str, list[dict[str, object]]] = {}
    for row in rows.to_pylist():
        row |= {"at": row["written"], "offsets_partition": 0, "source": file.name}
        by_group.setdefault(row["group"], []).append(row)
    observed = {
        group: list(observed_groups(rows_of_group, dict(topic_names)))
        for group, rows_of_group in by_group.items()
    }
    return {group: seen for group, seen in observed.items() if seen}


@pytest.mark.parametrize("recording", ["kafka-4.3.1-coordinator-outage", "kafka-0.9.0.1-coordinator-outage"])
def test_columns_tell_what_the_bytes_tell(recording: str) -> None:
    """Classic groups and KIP-848 groups of real brokers, with members, assignments and timeouts."""
    files = sorted(unpacked(recording).rglob("__consumer_offsets-*/*.log"))
    generations = 0
    for file in files:
        topic_names: dict[bytes, str] = {}
        by_reader(file, topic_names)  # What commits tell of topic ids; the pipeline has it of snapshots.
        expected = by_reader(file, topic_names)
        if recording.startswith("kafka-0.9"):  # No record has a time of its own: commits tell it elsewhere.
            expected = {group: [replace(row, at=None) for row in rows] for group, rows in expected.items()}
        assert by_columns(file, topic_names) == expected
        generations += sum(isinstance(row, Generation) for rows in expected.values() for row in rows)
    assert generations > 5


def test_record_whose_value_could_not_be_decoded_is_left_out() -> None:
    """Kafka 3.7 wrote some records in another form: they must not read as an empty assignment."""
    (row, *_) = (
        row for row in two_join() if row["key_type"] == RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
    )
    assert entry_of(row) is not None
    assert entry_of({**row, "details": {"unread": "a byte too many"}}) is None
