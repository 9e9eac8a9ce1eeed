"""Topics: what a release says of those that it has just created, and where times lie in them."""

from kelpie.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kelpie.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from kelpie.wire.records import Record, write_batch, write_message_set
from tests.lab.personas import RELEASES, personas
from tests.lab.personas.cluster import Cluster
from tests.lab.personas.test_message_formats import produce

LIST_OFFSETS = {"0.9": range(1), "2.8": range(7), "3.9": range(10), "4.3": range(1, 12)}
TIMES = (-1, -2, -3, -4, -5, -6, -7, 0, 1500, 3000, 3001)
STAMPS = (1000, 3000, 2000)


@personas(*RELEASES)
def test_a_topic_that_is_just_being_created(cluster: Cluster) -> None:
    """With ZooKeeper a broker creates it itself: 5. With KRaft it asks the controller to: 3."""
    client = cluster.client()
    for version in (0,) if cluster.is_first else (0, 1, 4, 8):
        name = f"{cluster.group}-{version}"
        answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), version)
        code = 3 if cluster.persona == "4.3" else 5
        assert [(topic.error_code, topic.partitions) for topic in answer.topics] == [(code, [])]


@personas(*RELEASES)
def test_times_in_every_version_of_list_offsets(cluster: Cluster) -> None:
    """Latest and earliest are everyone's; −3 and below came with 3.0, and were mere times before."""
    client, topic = cluster.client(), cluster.group
    cluster.has_topic(topic, client)
    for filled in (False, True):
        if filled:
            records = [
                Record(offset=at, timestamp=stamp, key=b"k", value=b"v") for at, stamp in enumerate(STAMPS)
            ]
            old = cluster.is_first
            written = write_message_set(records, magic=0) if old else write_batch(records)
            assert produce(client, topic, written, 0 if old else 3) == 0
        for version in LIST_OFFSETS[cluster.persona]:
            for time in TIMES:
                asked = ListOffsetsPartition(partition_index=0, timestamp=time)
                topics = [ListOffsetsTopic(name=topic, partitions=[asked])]
                answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version)
                code = answer.topics[0].partitions[0].error_code
                refuses = cluster.persona in ("3.9", "4.3") and (time == -7 or (time == -3 and version < 7))
                if time in (-1, -2, -3, -7):
                    assert code == (35 if refuses else 0)
