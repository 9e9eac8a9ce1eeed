"""The Java client of Kafka 4.3.1: records, groups and transactions, against the lab and against Kafka."""

from collections.abc import Callable

from tests.lab.clients.clusters import Kafka
from tests.lab.java.clients import Clients, numbers, throws
from tests.lab.java.jvm import KafkaJvm, Said


def test_times_lead_to_offsets(java: KafkaJvm, clients: Clients, kafka: Kafka) -> None:
    """offsetsForTimes gives the first record at or after a time; null says that there is none."""
    topic = kafka.create_topic()
    producer = clients.producer()
    offsets = [
        clients.send(producer, topic, str(time), time_ms=1_700_000_000_000 + time) for time in (0, 50, 20, 90)
    ]
    consumer = clients.consumer()
    partition = clients.partition(topic, 0)

    def at(time: int) -> int | None:
        found = consumer.offsetsForTimes({partition: java.jvm.java.lang.Long(1_700_000_000_000 + time)})
        return found[partition].offset() if found[partition] is not None else None

    assert offsets == [0, 1, 2, 3]
    assert [at(time) for time in (0, 1, 50, 51, 90, 91)] == [0, 1, 1, 3, 3, None]
    assert consumer.endOffsets([partition])[partition] == 4
    assert consumer.beginningOffsets([partition])[partition] == 0


def test_two_members_share_a_topic_and_one_leaves(
    clients: Clients, kafka: Kafka, tool: Callable[..., Said]
) -> None:
    """Each partition has one reader, before and after, and the tools tell who reads what."""
    topic, group = kafka.create_topic(4), "sharers"
    first, second = (clients.consumer(group, {"client.id": f"member-{name}"}) for name in ("one", "two"))
    for consumer in (first, second):
        consumer.subscribe([topic])

    def shared() -> bool:
        for consumer in (first, second):
            clients.poll(consumer, 50)
        return [len(consumer.assignment()) for consumer in (first, second)] == [2, 2]

    kafka.wait_until(shared)
    described = tool("kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose").stdout
    state = tool("kafka-consumer-groups", "--describe", "--group", group, "--state").stdout
    refused = tool("kafka-consumer-groups", "--delete", "--group", group).stdout
    both = numbers([*first.assignment(), *second.assignment()])
    second.close()

    def alone() -> bool:
        clients.poll(first, 50)
        return len(first.assignment()) == 4

    kafka.wait_until(alone)
    assert both == [0, 1, 2, 3]
    rows = sorted(line.split()[3:] for line in described.splitlines() if f"{group} " in line)
    assert rows == [
        ["member-one", "2", "-", f"{topic}:0,1", "-", "-"],
        ["member-two", "2", "-", f"{topic}:2,3", "-", "-"],
    ]
    assert [line.split()[3:] for line in state.splitlines() if f"{group} " in line] == [
        ["range", "Stable", "2"]
    ]
    assert "GroupNotEmptyException: The group is not empty." in refused


def test_cooperative_members_keep_what_they_have(clients: Clients, kafka: Kafka) -> None:
    """A newcomer takes over partitions; nobody gives up one that stays with it (KIP-429)."""
    topic, group = kafka.create_topic(4), "cooperators"
    settings = {
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    }
    producer = clients.producer()
    first = clients.consumer(group, settings)
    first.subscribe([topic])
    kafka.wait_until(lambda: clients.poll(first, 50) == [] and len(first.assignment()) == 4)
    second = clients.consumer(group, settings)
    second.subscribe([topic])
    kept: list[int] = numbers(first.assignment())

    def shared() -> bool:
        clients.poll(second, 50)
        clients.poll(first, 50)
        kept[:] = [number for number in kept if number in numbers(first.assignment())]
        return [len(consumer.assignment()) for consumer in (first, second)] == [2, 2]

    kafka.wait_until(shared)
    for number in range(4):
        clients.send(producer, topic, f"v{number}", partition=number)

    assert kept == numbers(first.assignment())
    assert [value for _, _, value in clients.poll_for(first, 2)] == [f"v{number}" for number in kept]
    assert numbers([*first.assignment(), *second.assignment()]) == [0, 1, 2, 3]


def test_static_member_comes_back_to_its_partitions(clients: Clients, kafka: Kafka) -> None:
    """No rebalance for the others (KIP-345); a second one with its name is shut out."""
    topic, group = kafka.create_topic(2), "statics"
    names = [{"group.instance.id": f"static-{name}"} for name in ("one", "two")]
    first, second = (clients.consumer(group, name) for name in names)
    for consumer in (first, second):
        consumer.subscribe([topic])

    def shared() -> bool:
        for consumer in (first, second):
            clients.poll(consumer, 50)
        return [len(consumer.assignment()) for consumer in (first, second)] == [1, 1]

    kafka.wait_until(shared)
    before, generation = numbers(second.assignment()), first.groupMetadata().generationId()
    second.close()
    again = clients.consumer(group, names[1])
    again.subscribe([topic])
    kafka.wait_until(lambda: clients.poll(again, 50) == [] and len(again.assignment()) == 1)
    clients.poll(first, 500)

    assert numbers(again.assignment()) == before
    assert first.groupMetadata().generationId() == generation == again.groupMetadata().generationId()
    usurper = clients.consumer(group, names[1])
    usurper.subscribe([topic])
    kafka.wait_until(lambda: clients.poll(usurper, 50) == [] and len(usurper.assignment()) == 1)
    with throws("FencedInstanceIdException"):
        kafka.wait_until(lambda: clients.poll(again, 100))


def test_commits_outlive_their_consumer(clients: Clients, kafka: Kafka) -> None:
    """The next one of the group goes on where the last one stopped, metadata included."""
    topic, group = kafka.create_topic(), "committers"
    producer = clients.producer()
    for number in range(5):
        clients.send(producer, topic, f"v{number}")
    partition = clients.partition(topic, 0)
    first = clients.consumer(group, {"max.poll.records": 3})
    first.subscribe([topic])
    read = clients.poll_for(first, 3)
    first.commitSync({partition: clients.offset(2)})
    first.close()

    second = clients.consumer(group)
    second.subscribe([topic])

    assert [value for _, _, value in read] == ["v0", "v1", "v2"]
    assert [value for _, _, value in clients.poll_for(second, 3)] == ["v2", "v3", "v4"]


def test_committed_readers_see_whole_transactions_only(clients: Clients, kafka: Kafka) -> None:
    """Aborted records are skipped, open ones hold up whoever waits for what is committed."""
    topic = kafka.create_topic()
    producer = clients.producer({"transactional.id": f"book-{topic}"})
    producer.initTransactions()
    for number, end in enumerate((producer.commitTransaction, producer.abortTransaction) * 2):
        producer.beginTransaction()
        clients.send(producer, topic, f"t{number}")
        end()
    producer.beginTransaction()
    clients.send(producer, topic, "open")

    every = clients.read(topic, 5)
    committed = clients.read(topic, 2, "read_committed")
    reader = clients.consumer(settings={"isolation.level": "read_committed"})
    stable = reader.endOffsets([clients.partition(topic, 0)])[clients.partition(topic, 0)]
    producer.commitTransaction()

    assert every == [(0, "t0"), (2, "t1"), (4, "t2"), (6, "t3"), (8, "open")]
    assert committed == [(0, "t0"), (4, "t2")]
    assert stable == 8
    assert clients.read(topic, 3, "read_committed") == [(0, "t0"), (4, "t2"), (8, "open")]


def test_offsets_are_part_of_a_transaction(clients: Clients, kafka: Kafka) -> None:
    """Read, write, commit as one: an aborted round leaves the group where it was."""
    source, target, group = kafka.create_topic(), kafka.create_topic(), "movers"
    plain, mover = clients.producer(), clients.producer({"transactional.id": f"mover-{target}"})
    for number in range(4):
        clients.send(plain, source, f"v{number}")
    mover.initTransactions()
    partition = clients.partition(source, 0)
    reader = clients.consumer(group)
    reader.subscribe([source])
    records = clients.poll_for(reader, 4)

    for end, reached in ((mover.abortTransaction, 4), (mover.commitTransaction, 2)):
        mover.beginTransaction()
        for _, _, value in records[:reached]:
            clients.send(mover, target, value)
        mover.sendOffsetsToTransaction({partition: clients.offset(reached)}, reader.groupMetadata())
        end()

    assert reader.committed({partition})[partition].offset() == 2
    assert [value for _, value in clients.read(target, 2, "read_committed")] == ["v0", "v1"]


def test_second_producer_of_a_name_shuts_out_the_first(clients: Clients, kafka: Kafka) -> None:
    """A zombie must not write into, or end, the transaction of its successor."""
    topic = kafka.create_topic()
    name = {"transactional.id": f"twins-{topic}"}
    zombie, heir = clients.producer(name), clients.producer(name)
    zombie.initTransactions()
    zombie.beginTransaction()
    clients.send(zombie, topic, "of the zombie")

    heir.initTransactions()
    heir.beginTransaction()
    clients.send(heir, topic, "of the heir")
    with throws("ProducerFencedException", "InvalidProducerEpochException"):
        clients.send(zombie, topic, "too late")
        zombie.commitTransaction()
    heir.commitTransaction()

    assert [value for _, value in clients.read(topic, 1, "read_committed")] == ["of the heir"]


def test_newer_group_protocol_is_refused_as_by_an_older_broker(clients: Clients, kafka: Kafka) -> None:
    """The lab does not offer KIP-848 yet, and a client that wants it is told so; real Kafka serves it."""
    topic = kafka.create_topic()
    clients.send(clients.producer(), topic, "v")
    config = {"group.protocol": "consumer", "heartbeat.interval.ms": "", "session.timeout.ms": ""}
    consumer = clients.consumer("newer", config)
    consumer.subscribe([topic])

    if kafka.kind == "real":
        assert clients.poll_for(consumer, 1) == [(0, 0, "v")]
    else:
        with throws("UnsupportedVersionException"):
            clients.poll_for(consumer, 1)
