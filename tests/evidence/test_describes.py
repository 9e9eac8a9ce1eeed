"""Outputs of Kafka's tools, of every age, as they print them."""

# ruff: noqa: E501 - outputs are quoted as they stand.

import pytest

from kelpie.errors import ErrorCode
from kelpie.evidence.describes import Output, looks_like_output, read_output
from kelpie.model.names import TopicPartition
from kelpie.observations import PartitionView
from kelpie.observations.cluster import NO_LEADER
from kelpie.observations.positions import NO_OFFSET


def _read(text: str, name: str = "out.txt") -> Output:
    lines = text.strip("\n").split("\n")
    assert looks_like_output(lines, name)
    return read_output(lines, name)


TOPICS = [
    (
        "0.9",
        "Topic:orders\tPartitionCount:1\tReplicationFactor:2\tConfigs:compression.type=uncompressed,segment.bytes=1\n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,0\tIsr: 1,0",
        PartitionView("orders", 0, 1, (1, 0), (1, 0), source="out.txt:2"),
        {"compression.type": "uncompressed", "segment.bytes": "1"},
    ),
    (
        "0.9, without a leader",
        "Topic:orders\tPartitionCount:1\tReplicationFactor:2\tConfigs:\n"
        "\tTopic: orders\tPartition: 0\tLeader: -1\tReplicas: 1,0\tIsr: ",
        PartitionView("orders", 0, NO_LEADER, (1, 0), (), source="out.txt:2"),
        {},
    ),
    (
        "2.8",
        "Topic: orders\tTopicId: xgmGCwwWRtiKAxDR8E4GEw\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: a.b=x,y,c.d=z\n"
        "\tTopic: orders\tPartition: 0\tLeader: none\tReplicas: 1,0\tIsr: \tAdding Replicas: 3\tRemoving Replicas: 1",
        PartitionView("orders", 0, NO_LEADER, (1, 0), (), source="out.txt:2"),
        {"a.b": "x,y", "c.d": "z"},
    ),
    (
        "4.3",
        "Topic: orders\tTopicId: xgmGCwwWRtiKAxDR8E4GEw\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: min.insync.replicas=1\n"
        "\tTopic: orders\tPartition: 0\tLeader: none\tReplicas: 2,3\tIsr: \tElr: 2\tLastKnownElr: 2",
        PartitionView("orders", 0, NO_LEADER, (2, 3), (), eligible=(2,), source="out.txt:2"),
        {"min.insync.replicas": "1"},
    ),
    (
        "4.x against an old broker",
        "Topic: orders\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: orders\tPartition: 0\tLeader: 3\tReplicas: 2,3\tIsr: 3\tElr: N/A\tLastKnownElr: N/A",
        PartitionView("orders", 0, 3, (2, 3), (3,), source="out.txt:2"),
        {},
    ),
    (
        "pasted, tabs lost",
        "Topic: orders   PartitionCount: 1   ReplicationFactor: 2   Configs: \n"
        "        Topic: orders   Partition: 0    Leader: 3       Replicas: 2,3   Isr: 3",
        PartitionView("orders", 0, 3, (2, 3), (3,), source="out.txt:2"),
        {},
    ),
]


@pytest.mark.parametrize(("age", "text", "view", "settings"), TOPICS, ids=[row[0] for row in TOPICS])
def test_partitions_are_read_from_kafka_topics_of_every_age(
    age: str, text: str, view: PartitionView, settings: dict[str, str]
) -> None:
    """Leader, replicas and who is in sync: the first thing anyone saves."""
    found = _read(text).observations
    assert found.partitions == [view]
    assert {row.name: row.value for row in found.settings} == {"partitions": "1", **settings}
    assert {row.of for row in found.settings} == {"topic orders"}


OFFSETS = [
    (
        "0.9",
        "GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER\n"
        "g, orders, 0, 3229, 3230, 1, consumer-1_/127.0.0.1\n"
        "g, orders, 1, unknown, 10, unknown, consumer-1_/127.0.0.1",
    ),
    (
        "0.10",
        "GROUP                          TOPIC                          PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             OWNER\n"
        "g                              orders                         0          3229            3230            1               consumer-1_/127.0.0.1\n"
        "g                              orders                         1          unknown         10              unknown         consumer-1_/127.0.0.1",
    ),
    (
        "2.4",
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID\n"
        "g               orders          0          3229            3230            1               m-1             /127.0.0.1      c\n"
        "g               orders          1          -               10              -               m-1             /127.0.0.1      c",
    ),
    (
        "4.x, --verbose",
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID\n"
        "g               orders          0          -            3229            3230            1               m-1             /127.0.0.1      c\n"
        "g               orders          1          -            -               10              -               m-1             /127.0.0.1      c",
    ),
]


@pytest.mark.parametrize(("age", "text"), OFFSETS, ids=[row[0] for row in OFFSETS])
def test_offsets_are_read_from_kafka_consumer_groups_of_every_age(age: str, text: str) -> None:
    """Where the group stood, and where the log ended."""
    found = _read(text).observations
    assert [row[:4] for row in found.committed] == [("g", "orders", 0, 3229), ("g", "orders", 1, NO_OFFSET)]
    assert [(row.partition, row.latest) for row in found.ends] == [(0, 3230), (1, 10)]
    assert set(found.known_groups) == {"g"}


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("describe-group-billing-1.txt", ""),
        ("out.txt", "$ kafka-consumer-groups.sh --bootstrap-server a:9092 --describe --group billing-1\n"),
        ("out.txt", "Consumer group 'billing-1' has no active members.\n"),
    ],
)
def test_tables_without_a_group_get_it_from_the_command_the_text_or_the_name(name: str, before: str) -> None:
    """From 0.11 to 2.3 the tool did not print it."""
    text = (
        f"{before}\n"
        "TOPIC                          PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG        CONSUMER-ID     HOST       CLIENT-ID\n"
        "orders                         0          5               9               4          -               -          -"
    )
    assert [row[:4] for row in _read(text, name).observations.committed] == [("billing-1", "orders", 0, 5)]


def test_a_name_with_spaces_is_found_by_where_its_column_begins() -> None:
    """Kafka takes any name; tables are aligned."""
    text = (
        "GROUP             TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID\n"
        "group with spaces orders          0          5               9               4               -               -               -"
    )
    assert [row[:4] for row in _read(text).observations.committed] == [("group with spaces", "orders", 0, 5)]


def test_members_and_states_are_read() -> None:
    """Who is in the group, what each has, and who coordinates."""
    found = _read(
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT    TARGET-EPOCH    TARGET-ASSIGNMENT\n"
        "g               m-1             /127.0.0.1      c               3               2               orders:0,1;payments:0 2               orders:0,1;payments:0\n"
        "\n"
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS\n"
        "g               127.0.0.1:21102  (2)      uniform              Stable               1\n"
        "\n"
        "COORDINATOR (ID)          ASSIGNMENT-STRATEGY       STATE                #MEMBERS\n"
        "localhost:9092 (7)                                  Empty                0\n",
        "group-h.txt",
    ).observations
    states = {row.group: row for row in found.states}
    row = states["g"]
    assert (row.state, row.protocol, row.coordinator, row.kind) == ("Stable", "uniform", 2, "consumer")
    assert row.members[0].assigned == (
        TopicPartition("orders", 0),
        TopicPartition("orders", 1),
        TopicPartition("payments", 0),
    )
    assert (states["h"].state, states["h"].coordinator, states["h"].protocol) == ("Empty", 7, "")


def test_members_up_to_3_x_are_read() -> None:
    """Assignments had brackets and blanks then, and static members a column."""
    found = _read(
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT\n"
        "g               m-1             i1                /127.0.0.1      c               3               orders(0,1), payments(0)\n"
        "g               m-2             i2                /127.0.0.1      c               0               -\n"
    ).observations
    first, second = found.states[0].members
    assert (first.instance_id, len(first.assigned or ()), second.assigned) == ("i1", 3, ())


@pytest.mark.parametrize(
    ("text", "name", "groups"),
    [
        (
            "GROUP                     STATE\na                         Stable\nb                         Empty",
            "x.txt",
            ("a", "b"),
        ),
        (
            "GROUP                     TYPE                 STATE\na                         Consumer             Stable",
            "x.txt",
            ("a",),
        ),
        (
            "GROUP                     TYPE                      PROTOCOL\na                         Classic                   consumer",
            "x.txt",
            ("a",),
        ),
        ("a\nb", "before-groups-list.txt", ("a", "b")),
    ],
)
def test_lists_of_groups_are_read(text: str, name: str, groups: tuple[str, ...]) -> None:
    """Whoever is not in it any more is the one that matters."""
    assert [row.groups for row in _read(text, name).observations.listings] == [groups]


FAILURES = [
    (
        "Error while executing consumer group command The group coordinator is not available.",
        "FindCoordinator",
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
    (
        "Error: Executing consumer group command failed due to org.apache.kafka.common.errors.CoordinatorNotAvailableException: The coordinator is not available.",
        "FindCoordinator",
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
    (
        "Error: Executing consumer group command failed due to org.apache.kafka.common.errors.TimeoutException: Call(callName=describeConsumerGroups(api=FIND_COORDINATOR), deadlineMs=1794776373917, tries=35607, nextAllowedTryMs=1794776374840) timed out at 1794776373922 after 35607 attempt(s)",
        "FindCoordinator",
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
    (
        "Error: Executing consumer group command failed due to org.apache.kafka.common.errors.TimeoutException: Call(callName=describeConsumerGroups(api=FIND_COORDINATOR), deadlineMs=1794776373917, tries=1, nextAllowedTryMs=1794776374840) timed out at 1794776373922 after 1 attempt(s)",
        "FindCoordinator",
        ErrorCode.REQUEST_TIMED_OUT,
    ),
    (
        "Error: Executing consumer group command failed due to org.apache.kafka.common.errors.GroupIdNotFoundException: Group billing-1 not found.",
        "DescribeGroups",
        ErrorCode.GROUP_ID_NOT_FOUND,
    ),
    ("Error: Consumer group 'billing-1' does not exist.", "DescribeGroups", ErrorCode.GROUP_ID_NOT_FOUND),
]


@pytest.mark.parametrize(("text", "asked", "error"), FAILURES)
def test_what_the_tool_says_when_it_fails_is_an_answer_about_the_group(
    text: str, asked: str, error: ErrorCode
) -> None:
    """Thousands of tries in seconds are answers of 15; a single one is silence."""
    (row,) = _read(text, "during-group-billing-1.txt").observations.answers
    assert (row.group, row.asked, row.error, row.message) == ("billing-1", asked, error, text)


def test_a_failure_that_names_no_group_is_told() -> None:
    """It is evidence, but of whom?"""
    found = _read(
        "Error while executing consumer group command The group coordinator is not available."
    ).observations
    assert found.answers == []
    assert [row.kind for row in found.unasked] == ["group"]


def test_a_failure_names_its_moment() -> None:
    """The only time that an output ever has."""
    assert _read(FAILURES[2][0]).times == [1794776373922]


def test_ends_of_logs_are_read() -> None:
    """kafka-get-offsets prints one number, and only the command says which."""
    text = (
        "$ kafka-get-offsets.sh --bootstrap-server a:9092 --topic orders\norders:0:40\norders:1:\n"
        "$ kafka-get-offsets.sh --bootstrap-server a:9092 --topic orders --time earliest\norders:0:7"
    )
    rows = _read(text).observations.ends
    assert [(row.partition, row.earliest, row.latest) for row in rows] == [
        (0, NO_OFFSET, 40),
        (0, 7, NO_OFFSET),
    ]


def test_a_transcript_of_several_commands_is_read_as_a_whole() -> None:
    """People save their terminal, warnings and all."""
    text = (
        "$ kafka-topics.sh --describe --topic orders\n"
        "[2026-11-15 20:58:46,054] WARN [AdminClient clientId=a] Connection to node -2 could not be established. (x.Y)\n"
        + TOPICS[3][1]
        + "\n$ kafka-consumer-groups.sh --describe --group gone\n"
        + FAILURES[0][0]
        + "\n$ kafka-consumer-groups.sh --describe --group g\n\n"
        + OFFSETS[2][1]
        + "\n$ kafka-consumer-groups.sh --delete --group h\nDeletion of requested consumer groups ('h') was successful.\n"
    )
    found = _read(text).observations
    assert len(found.partitions) == 1
    assert [row.group for row in found.answers] == ["gone"]
    assert {row.group for row in found.committed} == {"g"}
    assert [row.group for row in found.removals] == ["h"]


def test_other_texts_are_no_outputs() -> None:
    """A letter that speaks of topics and groups is a letter."""
    for text in ("Topic: why my group is slow", "GROUP THERAPY", "TOPIC PARTITION STATUS", "a:b:c", ""):
        assert not looks_like_output([text], "letter.txt")
