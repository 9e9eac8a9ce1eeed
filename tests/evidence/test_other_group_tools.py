"""Outputs of kafka-share-groups and kafka-streams-groups, as Kafka 4.1 to 4.3 print them."""

# ruff: noqa: E501 - outputs are quoted as they stand.

from kelpie.evidence.describes import looks_like_output, read_output
from kelpie.model.names import TopicPartition
from kelpie.observations import GroupState, Observations
from kelpie.observations.groups import SharePosition


def _read(text: str, name: str = "out.txt") -> Observations:
    lines = text.strip("\n").split("\n")
    assert looks_like_output(lines, name)
    return read_output(lines, name).observations


def _state(text: str, name: str = "out.txt") -> GroupState:
    (state,) = _read(text, name).states
    return state


def test_positions_of_a_share_group_are_read() -> None:
    """A dash: no member has acquired a record there yet. Whether the group is live is not in this output."""
    state = _state(
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH    START-OFFSET    LAG\n"
        "share-app       orders          0          0               7               3\n"
        "share-app       orders          1          -               -               -\n"
    )
    assert (state.group, state.kind, state.state) == ("share-app", "share", "Unknown")
    assert state.share_positions == (
        SharePosition("orders", 0, 7, 3, 0),
        SharePosition("orders", 1, -1, -1, -1),
    )
    assert not state.is_described
    old = "GROUP           TOPIC           PARTITION  START-OFFSET\nshare-app       orders          0          7\n"
    assert _state(old).share_positions == (SharePosition("orders", 0, 7),)


def test_members_of_a_share_group_are_read() -> None:
    """4.1 has no count of partitions; with --verbose there is an epoch."""
    texts = (
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       ASSIGNMENT\n"
        "share-app       m-1             /10.0.0.7       app-1           orders:0,1;payments:2\n",
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS  MEMBER-EPOCH  ASSIGNMENT\n"
        "share-app       m-1             /10.0.0.7       app-1           3            2             orders:0,1;payments:2\n",
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS  ASSIGNMENT\n"
        "share-app       m-1             /10.0.0.7       app-1           3            orders:0,1;payments:2\n",
    )
    for text in texts:
        state = _state(text)
        assert (state.kind, state.state) == ("share", "Stable")
        (member,) = state.members
        assert (member.member_id, member.host) == ("m-1", "/10.0.0.7")
        assert member.assigned == (
            TopicPartition("orders", 0),
            TopicPartition("orders", 1),
            TopicPartition("payments", 2),
        )


def test_members_of_a_classic_group_are_not_taken_for_those_of_a_share_group() -> None:
    """Near miss: the same headings, in Kafka up to 3.x; its partitions are in parentheses."""
    state = _state(
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT\n"
        "billing         m-1             /10.0.0.7       app-1           2               orders(0,1)\n"
    )
    assert state.kind == "classic"


def test_states_are_those_of_the_tool_that_printed_them() -> None:
    """The table alone does not tell share from Streams groups: the command does, or the name of the file."""
    table = (
        "GROUP           COORDINATOR (ID)          STATE           #MEMBERS\n"
        "app             localhost:9092  (1)       Stable          2\n"
    )
    assert _state(table).kind == "share"
    assert _state(table, "kafka-streams-groups.txt").kind == "streams"
    shown = _state(
        f"$ kafka-streams-groups.sh --bootstrap-server k:9092 --describe --group app --state\n\n{table}"
    )
    assert (shown.kind, shown.state, shown.coordinator) == ("streams", "Stable", 1)
    verbose = (
        "GROUP           COORDINATOR (ID)          STATE           GROUP-EPOCH     TARGET-ASSIGNMENT-EPOCH   #MEMBERS\n"
        "app             localhost:9092  (1)       Stable          3               3                         2\n"
    )
    assert (_state(verbose).kind, _state(verbose).epoch) == ("streams", 3)


def test_members_of_a_streams_group_have_tasks() -> None:
    """Which topics a task reads is not told, so nothing is said about partitions."""
    texts = (
        "GROUP           MEMBER          PROCESS         CLIENT-ID       ASSIGNMENTS\n"
        "app             m-1             p-1             app-1           ACTIVE: 0:[0,1]; 1:[0];\n",
        "GROUP           TARGET-ASSIGNMENT-EPOCH   TOPOLOGY-EPOCH MEMBER          MEMBER-PROTOCOL MEMBER-EPOCH    PROCESS         CLIENT-ID       ASSIGNMENTS\n"
        "app             3                         0              m-1             streams         3               p-1             app-1           ACTIVE: 0:[0,1]; TARGET-ACTIVE: 0:[0,1];\n",
    )
    for text in texts:
        state = _state(text)
        assert (state.kind, state.state) == ("streams", "Stable")
        (member,) = state.members
        assert (member.member_id, member.client_id, member.assigned) == ("m-1", "app-1", None)


def test_offsets_of_a_streams_group_are_committed_offsets() -> None:
    """Only with --verbose; else the tool tells the lag alone."""
    seen = _read(
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LEADER-EPOCH    LOG-END-OFFSET  OFFSET-LAG\n"
        "app             orders          0          4               0               10              6\n"
        "app             orders          1          -               -               5               5\n"
    )
    assert [(row.partition, row.offset) for row in seen.committed] == [(0, 4), (1, -1)]
    assert [(row.partition, row.latest) for row in seen.ends] == [(0, 10), (1, 5)]
    assert seen.states[0].kind == "streams"
    short = "GROUP           TOPIC           PARTITION  OFFSET-LAG\napp             orders          0          6\n"
    assert _state(short).kind == "streams"


def test_lists_and_remarks_name_the_kind() -> None:
    listed = "GROUP           STATE\nshare-app       Stable\n"
    assert _state(listed, "kafka-share-groups-list.txt").kind == "share"
    empty = _state("Share group 'share-app' has no active members.")
    assert (empty.kind, empty.state) == ("share", "Empty")
    failed = "Error: Executing share group command failed due to org.apache.kafka.common.errors.GroupIdNotFoundException: Group nobody not found."
    assert _read(failed).answers[0].group == "nobody"


TRANSCRIPT = """
$ kafka-share-groups.sh --list
share-app

$ kafka-share-groups.sh --list --state
GROUP           STATE
share-app       Stable

$ kafka-share-groups.sh --describe --group share-app

GROUP           TOPIC           PARTITION  START-OFFSET  LAG
share-app       orders          0          0             0
share-app       orders          1          0             0

$ kafka-share-groups.sh --describe --group share-app --offsets --verbose

GROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG
share-app       orders          0          0             0             0
share-app       orders          1          0             0             0

$ kafka-share-groups.sh --describe --group share-app --members

GROUP           CONSUMER-ID            HOST            CLIENT-ID              #PARTITIONS  ASSIGNMENT
share-app       gpcO2UwKSsSB2dzfoTaPlA /127.0.0.1      console-share-consumer 2            orders:0,1

$ kafka-share-groups.sh --describe --group share-app --members --verbose

GROUP           CONSUMER-ID            HOST            CLIENT-ID              #PARTITIONS  MEMBER-EPOCH  ASSIGNMENT
share-app       gpcO2UwKSsSB2dzfoTaPlA /127.0.0.1      console-share-consumer 2            3             orders:0,1

$ kafka-share-groups.sh --describe --group share-app --state

GROUP           COORDINATOR (ID)          STATE           #MEMBERS
share-app       127.0.0.1:32759  (1)      Stable          1

$ kafka-share-groups.sh --describe --group share-app --state --verbose

GROUP           COORDINATOR (ID)          STATE           GROUP-EPOCH  ASSIGNMENT-EPOCH  #MEMBERS
share-app       127.0.0.1:32759  (1)      Stable          3            3                 1

$ kafka-streams-groups.sh --list
streams-app

$ kafka-streams-groups.sh --list --state
GROUP           STATE
streams-app     Stable

$ kafka-streams-groups.sh --describe --group streams-app
GROUP           TOPIC           PARTITION  OFFSET-LAG
streams-app     orders          0          10
streams-app     orders          1          5

$ kafka-streams-groups.sh --describe --group streams-app --offsets --verbose
GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LEADER-EPOCH    LOG-END-OFFSET  OFFSET-LAG
streams-app     orders          0          -               -               10              10
streams-app     orders          1          -               -               5               5

$ kafka-streams-groups.sh --describe --group streams-app --members
GROUP           MEMBER                               PROCESS                              CLIENT-ID       ASSIGNMENTS
streams-app     d5d66fd3-6323-4a50-8400-6436370c107e eda8f0b8-b2fe-4da4-a55d-99b80fec8013 kelpie          ACTIVE: 0:[0,1];

$ kafka-streams-groups.sh --describe --group streams-app --members --verbose
GROUP           TARGET-ASSIGNMENT-EPOCH   TOPOLOGY-EPOCH MEMBER                               MEMBER-PROTOCOL MEMBER-EPOCH    PROCESS                              CLIENT-ID       ASSIGNMENTS
streams-app     2                         0              d5d66fd3-6323-4a50-8400-6436370c107e streams         2               eda8f0b8-b2fe-4da4-a55d-99b80fec8013 kelpie          ACTIVE: 0:[0,1]; TARGET-ACTIVE: 0:[0,1];

$ kafka-streams-groups.sh --describe --group streams-app --state
GROUP           COORDINATOR (ID)          STATE                     #MEMBERS
streams-app     127.0.0.1:32759 (1)       Stable                    1

$ kafka-streams-groups.sh --describe --group streams-app --state --verbose
GROUP           COORDINATOR (ID)          STATE                     GROUP-EPOCH     TARGET-ASSIGNMENT-EPOCH   #MEMBERS
streams-app     127.0.0.1:32759 (1)       Stable                    2               2                         1

$ kafka-groups.sh --list
GROUP                TYPE                 PROTOCOL
share-app            Share                share
streams-app          Streams              streams
"""
"""Of real Kafka 4.3.1: a console share consumer, and an application on the protocol of Kafka Streams."""


def test_a_session_with_the_tools_of_kafka_4_3_is_read_as_a_whole() -> None:
    """Every table, as the tools print it; each group comes out with its kind, its members and positions."""
    seen = _read(TRANSCRIPT)
    states = {state.group: state for state in seen.states}
    share, streams = states["share-app"], states["streams-app"]
    assert (share.kind, share.state, share.epoch, share.coordinator) == ("share", "Stable", 3, 1)
    assert [member.member_id for member in share.members] == ["gpcO2UwKSsSB2dzfoTaPlA"]
    assert share.members[0].assigned == (TopicPartition("orders", 0), TopicPartition("orders", 1))
    assert [(row.partition, row.start, row.lag) for row in share.share_positions] == [(0, 0, 0), (1, 0, 0)]
    assert (streams.kind, streams.state, streams.epoch) == ("streams", "Stable", 2)
    assert [member.client_id for member in streams.members] == ["kelpie"]
    assert {(row.partition, row.latest) for row in seen.ends} == {(0, 10), (1, 5)}
    assert {group for listing in seen.listings for group in listing.groups} >= {"share-app", "streams-app"}
