"""Segments off disks: any layout, several replicas, and Kafka's own truth from before the outage."""

import shutil
from pathlib import Path

import pytest

from kelpie.evidence import read_evidence
from kelpie.model.names import TopicPartition
from kelpie.observations import OFFSETS_TOPIC, Observations
from tests.evidence import truth, unpacked
from tests.evidence.records import batch, commit, generation

NEW, OLD = "kafka-4.3.1-coordinator-outage", "kafka-0.9.0.1-coordinator-outage"
SEGMENT = "00000000000000000000.log"


def _disk(root: Path, content: bytes, *path: str) -> Path:
    file = root.joinpath(*path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def _last_commits(seen: Observations) -> dict[tuple[str, str, int], int]:
    last: dict[tuple[str, str, int], int] = {}
    for row in sorted(seen.commits, key=lambda it: it.at or 0):
        last[row[:3]] = row.offset
    return last


def test_the_last_commits_on_disk_are_what_kafka_described_before_the_outage() -> None:
    """kafka-consumer-groups was asked while all was well; the disks must say the same."""
    folder = unpacked(NEW)
    described = read_evidence([folder / "commands" / "before-groups-offsets.txt"]).committed
    seen = read_evidence([folder / "segments"])
    seen.commits = [
        row for row in seen.commits if (row.at or 0) <= 1794776295000
    ]  # Until the brokers were killed.
    last = _last_commits(seen)
    assert len(described) == 72
    assert {row[:3]: last[row[:3]] for row in described} == {row[:3]: row.offset for row in described}


def test_a_dead_broker_of_0_9_still_tells_where_its_groups_stood() -> None:
    """Magic 0, no times beside the records, and nobody left to ask."""
    last = _last_commits(read_evidence([unpacked(OLD) / "segments"]))
    sizes = {0: 3229, 1: 1644, 2: 2173, 3: 3229, 4: 1644, 5: 2173}
    for group in ("billing-0", "billing-1", "billing-5"):
        assert {key[2]: offset for key, offset in last.items() if key[0] == group} == sizes


def test_what_two_replicas_hold_counts_once() -> None:
    """Both disks of a partition are evidence, and usually both are there."""
    folder = unpacked(NEW) / "segments"
    alone = read_evidence([folder / "broker-2" / "__consumer_offsets-25"])
    both = read_evidence([folder / "broker-2", folder / "broker-3"])
    of_25 = [row for row in both.commits if "__consumer_offsets-25" in row.source]
    assert len(of_25) == len(alone.commits) == 161
    assert both.unasked == []


def test_replicas_that_differ_tell_each_their_own(tmp_path: Path) -> None:
    """After an unclean election the same offset holds two things, and both have been."""
    same = batch([commit("g", 1)])
    _disk(tmp_path, same + batch([commit("g", 2)], base=1), "broker-1", "__consumer_offsets-3", SEGMENT)
    _disk(tmp_path, same + batch([commit("g", 9)], base=1), "broker-2", "__consumer_offsets-3", SEGMENT)
    assert sorted(row.offset for row in read_evidence([tmp_path]).commits) == [1, 2, 9]


@pytest.mark.parametrize(
    ("path", "partition", "broker"),
    [
        (("__consumer_offsets-3", SEGMENT), 3, None),
        (("broker-2", "__consumer_offsets-3", SEGMENT), 3, 2),
        (("kafka-logs-7", "__consumer_offsets-3", SEGMENT), 3, 7),
        (("disks", "__consumer_offsets-3.3f2a-delete", SEGMENT), 3, None),
        ((f"broker2-__consumer_offsets-3-{SEGMENT}",), 3, 2),
        (("dump", "__consumer_offsets-3.log"), 3, None),
    ],
)
def test_any_layout_will_do_that_names_the_partition(
    tmp_path: Path, path: tuple[str, ...], partition: int, broker: int | None
) -> None:
    """People copy folders, and people copy files."""
    _disk(tmp_path, batch([commit("g", 1), generation("g", 1)]), *path)
    seen = read_evidence([tmp_path])
    assert [(row.topic, row.partition, row.latest) for row in seen.ends] == [(OFFSETS_TOPIC, partition, 2)]
    assert [row.node_id for row in seen.brokers] == ([] if broker is None else [broker])
    assert len(seen.commits) == len(seen.generations) == 1


def test_meta_properties_says_whose_disk_it_is(tmp_path: Path) -> None:
    """It knows better than the name of a folder."""
    _disk(tmp_path, batch([commit("g", 1)]), "kafka-logs-9", "__consumer_offsets-3", SEGMENT)
    _disk(tmp_path, b"#\nversion=1\ncluster.id=abc\nnode.id=4\n", "kafka-logs-9", "meta.properties")
    assert [row.node_id for row in read_evidence([tmp_path]).brokers] == [4]


def test_a_segment_whose_path_tells_nothing_is_known_by_its_keys(tmp_path: Path) -> None:
    """One file, sent by mail."""
    _disk(tmp_path, batch([commit("g", 1)]), "some.bin")
    _disk(tmp_path, batch([(b"order-1", b"{}")]), "other.bin")
    seen = read_evidence([tmp_path])
    assert [row.group for row in seen.commits] == ["g"]
    assert [(row.kind, row.name) for row in seen.unasked] == [("file", "other.bin")]


def test_segments_of_one_partition_are_read_in_order(tmp_path: Path) -> None:
    """A commit is only the last one if those before it come before it."""
    for base in (20, 0, 10):
        name = f"{base:020d}.log"
        _disk(tmp_path, batch([commit("g", base, at=base)], base=base), "__consumer_offsets-3", name)
    seen = read_evidence([tmp_path])
    assert [row.offset for row in seen.commits] == [0, 10, 20]
    assert [(row.earliest, row.latest) for row in seen.ends] == [(0, 21)]


def test_the_end_of_any_topic_is_known_from_its_newest_segment(tmp_path: Path) -> None:
    """With it, lag is known though nobody answers."""
    for base in (0, 50):
        pairs = [(b"k", b"v")] * 10
        _disk(tmp_path, batch(pairs, base=base, at=1794776000000), "broker-1", "orders-2", f"{base:020d}.log")
    (row,) = read_evidence([tmp_path]).ends
    assert (row.name, row.earliest, row.latest) == (TopicPartition("orders", 2), 0, 60)
    assert row.last_written == 1794776000000


def test_companions_of_segments_are_passed_over(tmp_path: Path) -> None:
    """A copied log directory is full of them, and none says anything here."""
    folder = tmp_path / "__consumer_offsets-3"
    _disk(tmp_path, batch([commit("g", 1)]), "__consumer_offsets-3", SEGMENT)
    for name in ("00000000000000000000.index", "00000000000000000000.timeindex", "leader-epoch-checkpoint"):
        (folder / name).write_bytes(bytes(64))
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: xgmGCwwWRtiKAxDR8E4GEw\n")
    (folder / "00000000000000000001.log").touch()
    assert read_evidence([tmp_path]).unasked == []


def test_a_damaged_replica_is_made_up_for_by_the_other(tmp_path: Path) -> None:
    """The disk that survived is often not the one that is whole."""
    for broker in ("broker-2", "broker-3"):
        shutil.copytree(
            unpacked(NEW) / "segments" / broker / "__consumer_offsets-25",
            tmp_path / broker / "__consumer_offsets-25",
        )
    file = tmp_path / "broker-2" / "__consumer_offsets-25" / SEGMENT
    raw = bytearray(file.read_bytes())
    raw[5000] ^= 0xFF
    file.write_bytes(raw)
    seen = read_evidence([tmp_path])
    assert len(seen.commits) == 161
    assert [row.name for row in seen.unasked] == [f"broker-2/__consumer_offsets-25/{SEGMENT}"]


def test_the_truth_names_the_groups_that_the_disks_name() -> None:
    """All groups of the recording have left something in the offsets topic."""
    named = {
        line.split()[0] for line in (truth(NEW) / "groups.txt").read_text().splitlines() if line[0] != "#"
    }
    assert set(read_evidence([unpacked(NEW) / "segments"]).known_groups) == named


def _other(record_type: int, group: str, *more: str) -> bytes:
    """The key of a record of a share or Streams group: its type, the group, and perhaps a member."""
    parts = (len(text.encode()).to_bytes(2) + text.encode() for text in (group, *more))
    return record_type.to_bytes(2) + b"".join(parts)


def test_share_and_streams_groups_on_disk_are_named_with_their_kind(tmp_path: Path) -> None:
    """Kafka 4.1 to 4.3: their records are not read further, and nothing is called unreadable for them."""
    epoch, member = b"\x00\x00\x00\x00\x00\x03\x00", b"\x00\x00\x01"
    rows = [
        (_other(11, "share-app"), epoch),
        (_other(10, "share-app", "m-1"), member),
        (_other(17, "streams-app"), epoch),
        (_other(19, "streams-app", "m-2"), member),
        (_other(11, "gone"), epoch),
        (_other(11, "gone"), None),
        commit("billing", 7),
    ]
    _disk(tmp_path, batch(rows), "anything.bin")
    seen = read_evidence([tmp_path])
    assert seen.unasked == []
    assert {row.group: (row.kind, row.state) for row in seen.states} == {
        "share-app": ("share", "Unknown"),
        "streams-app": ("streams", "Unknown"),
    }
    assert {"share-app", "streams-app", "billing"} <= seen.known_groups.keys()
    assert [row.group for row in seen.removals] == ["gone"]
