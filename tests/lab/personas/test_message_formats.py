"""What a release stores of what producers send, and what it gives to old and new consumers."""

import pytest

from kelpie.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kelpie.wire.records import Codec, Record, write_batch, write_message_set
from tests.lab.personas import personas
from tests.lab.personas.client import Client
from tests.lab.personas.cluster import Cluster
from tests.lab.personas.log import batches

RECORDS = [
    Record(offset=at, timestamp=1_700_000_000_000 + at, key=b"k", value=b"v%d" % at) for at in range(3)
]
CODECS = {"plain": Codec.NONE, "gzip": Codec.GZIP, "snappy": Codec.SNAPPY}


def produce(client: Client, topic: str, records: bytes, version: int) -> int:
    partition = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
    )
    code: int = client.ask(request, version).responses[0].partition_responses[0].error_code
    return code


def read(cluster: Cluster, client: Client, topic: str, version: int) -> list[tuple[int, int, bytes | None]]:
    """Magic, offset and value of everything. With the times and the codec it is kept for the comparison.

    Real Kafka cuts what it converts at the size that it had before, so it takes more than one request.
    """
    found: list[tuple[int, int, bytes | None]] = []
    while more := batches(client, topic, 0, version, start=len(found)):
        for batch in more:
            header = batch.header
            for record in batch.records():
                if record.offset >= len(found):
                    found.append((header.magic, record.offset, record.value))
                    form = f"magic {header.magic} {header.codec.name} at {record.timestamp}"
                    cluster.transcript.lines.append(f"fetched v{version}: {record.offset} {form}")
    return found


@personas()
@pytest.mark.parametrize("codec", CODECS)
def test_old_messages_are_kept_or_converted(cluster: Cluster, codec: str) -> None:
    """Magic 0 is all that 0.9 knows; later releases store magic 2, and convert back for old consumers."""
    client, topic = cluster.client("producer"), f"old-{codec}"
    cluster.has_topic(topic, client)
    assert produce(client, topic, write_message_set(RECORDS, magic=0, codec=CODECS[codec]), 0) == 0
    values = [b"v0", b"v1", b"v2"]
    assert read(cluster, client, topic, 0) == [(0, at, value) for at, value in enumerate(values)]
    if not cluster.is_first:
        assert produce(client, topic, write_message_set(RECORDS, magic=1, codec=CODECS[codec]), 2) == 0
        assert [value for _, _, value in read(cluster, client, topic, 2)] == values * 2
        stored = 11 if cluster.persona == "2.8" else 12
        assert read(cluster, client, topic, stored) == [(2, at, values[at % 3]) for at in range(6)]


@personas("2.8", "3.9")
@pytest.mark.parametrize("codec", CODECS)
def test_new_batches_are_converted_for_old_consumers(cluster: Cluster, codec: str) -> None:
    """Who speaks Fetch 0 reads magic 0, Fetch 3 magic 1, and Fetch 4 what is stored."""
    client, topic = cluster.client("producer"), f"new-{codec}"
    cluster.has_topic(topic, client)
    assert produce(client, topic, write_batch(RECORDS, codec=CODECS[codec]), 3) == 0
    for version, magic in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (11, 2)):
        assert {found[0] for found in read(cluster, client, topic, version)} == {magic}


@personas()
def test_messages_that_do_not_fit_the_version_are_refused(cluster: Cluster) -> None:
    """A batch of magic 2 needs Produce 3; a broken one is told so."""
    client, topic = cluster.client("producer"), "refused"
    cluster.has_topic(topic, client)
    broken = bytearray(write_message_set(RECORDS, magic=0))
    broken[-1] ^= 1
    assert produce(client, topic, bytes(broken), 0) == 2
    if not cluster.is_first:
        produce(client, topic, write_batch(RECORDS, codec=Codec.ZSTD), 3)
    assert produce(client, "no-such-partition-of", b"", 0) in (3, 5)
