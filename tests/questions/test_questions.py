"""Every question in every version that it says it can use: written, and its answer read."""

from typing import Any

import pytest

from kelpie.questions.consumer_group_heartbeat import AskNewerHeartbeat
from kelpie.questions.fetch import AskRecords
from kelpie.questions.find_coordinator import AskCoordinator
from kelpie.questions.heartbeat import AskHeartbeat
from kelpie.questions.join_group import AskToJoin
from kelpie.questions.leave_group import AskToLeave
from kelpie.questions.list_offsets import AskOffsets
from kelpie.questions.metadata import AskMetadata
from kelpie.questions.offset_commit import AskToCommit, OffsetToCommit
from kelpie.questions.offset_fetch import AskCommitted
from kelpie.questions.offset_for_leader_epoch import AskEpochEnds
from kelpie.questions.question import Question
from kelpie.questions.sync_group import AskForAssignment
from kelpie.wire import compiler
from kelpie.wire.api.find_coordinator import Coordinator, FindCoordinatorResponse
from kelpie.wire.api.leave_group import LeaveGroupResponse, MemberResponse
from kelpie.wire.api.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kelpie.wire.api.metadata import MetadataResponse
from kelpie.wire.api.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from kelpie.wire.schema import declaration_of
from tests.consumer.world import T0, T1

QUESTIONS: list[Question[Any]] = [
    AskMetadata(("t", "u")),
    AskMetadata(("t",), may_create=True),
    AskMetadata(()),
    AskCoordinator("g"),
    AskToJoin("g", "", None, 10_000, 60_000, (("range", b"blob"),), "a" * 300),
    AskToJoin("g", "m", "i", 10_000, 60_000, (("range", b"blob"),)),
    AskForAssignment("g", 3, "m", None, "range", (("m", b"blob"),)),
    AskForAssignment("g", 3, "m", "i", None),
    AskHeartbeat("g", 3, "m", None),
    AskHeartbeat("g", 3, "m", "i"),
    AskToLeave("g", "m", None, "why"),
    AskNewerHeartbeat("g", "m", 0, None, 60_000, ("t",), "uniform", ((b"1" * 16, (0, 1)),)),
    AskNewerHeartbeat("g", "m", -1),
    AskCommitted("g", (T0, T1)),
    AskCommitted("g", None),
    AskCommitted("g", (T0,), member_id="m", member_epoch=4),
    AskToCommit("g", 3, "m", None, {T0: OffsetToCommit(5, 2, "note"), T1: OffsetToCommit(6)}),
    AskToCommit("g", 3, "m", "i", {T0: OffsetToCommit(5, 2, "note")}),
    AskToCommit("g", 3, "m", None, {T0: OffsetToCommit(5, 2, "note")}, is_newer=True),
    AskOffsets(0, {T0: (-2, 4), T1: (-1, None)}),
    AskOffsets(1, {T0: (-1, 4)}),
    AskOffsets(0, {T0: (123_456, 4)}),
    AskEpochEnds({T0: (5, 4)}),
    AskRecords({T0: (7, 4), T1: (8, None)}, isolation_level=1),
]


def _versions(question: Question[Any]) -> range:
    declared = declaration_of(question.api).versions
    assert declared.last is not None
    last = declared.last if question.newest is None else question.newest
    return range(max(question.oldest, declared.first), last + 1)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_every_version_can_carry_it(question: Question[Any]) -> None:
    """Which one is used is known only when the broker has told what it speaks."""
    versions = _versions(question)
    assert versions, f"{question} has no version"
    for version in versions:
        request = question.request(version)
        encoded = compiler.encode(request, version)
        assert compiler.decode(question.api, version, encoded) is not None


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_it_says_in_a_line_what_it_is(question: Question[Any]) -> None:
    """Steps are read by people."""
    text = str(question)
    assert text.startswith(question.api.__name__.removesuffix("Request"))
    assert "\n" not in text
    assert len(text) < 120


def test_topics_are_not_created_by_asking() -> None:
    """Versions before 4 create what they are asked for by name; so nothing is asked by name there."""
    question = AskMetadata(("t",))
    assert question.request(0).topics == []
    assert question.request(3).topics is None
    assert question.request(9).allow_auto_topic_creation is False
    internal = AskMetadata(("__consumer_offsets",))
    assert internal.request(6).topics is None, "up to 2.0 it would be created whatever one says"
    assert internal.request(7).topics is not None
    facts = question.answer(MetadataResponse(brokers=[], topics=[]), 0)
    assert facts.topics["t"].error == 3


def test_coordinators_answer_is_the_same_in_both_shapes() -> None:
    """Version 4 answers for many keys."""
    question = AskCoordinator("g")
    old = question.answer(FindCoordinatorResponse(error_code=0, node_id=2, host="h", port=9), 1)
    rows = [
        Coordinator(key="other", node_id=7, host="x", port=1, error_code=0),
        Coordinator(key="g", node_id=2, host="h", port=9, error_code=0, error_message=""),
    ]
    new = question.answer(FindCoordinatorResponse(coordinators=rows), 4)
    assert (old.node_id, old.host, old.port, old.error) == (new.node_id, new.host, new.port, new.error)
    assert question.answer(FindCoordinatorResponse(coordinators=rows[:1]), 4).error == -1


def test_first_version_of_list_offsets_gives_a_list() -> None:
    """Of which the first one counts."""
    question = AskOffsets(0, {T0: (-1, None)})
    row = ListOffsetsPartitionResponse(partition_index=0, error_code=0, old_style_offsets=[10, 0])
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])])
    assert question.answer(response, 0)[T0].offset == 10
    row = ListOffsetsPartitionResponse(partition_index=0, error_code=0)
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])])
    assert question.answer(response, 0)[T0].offset is None
    assert question.answer(response, 1)[T0].offset is None


def test_error_of_a_member_counts_when_it_leaves() -> None:
    """Since version 3 each member has its own."""
    row = MemberResponse(member_id="m", group_instance_id=None, error_code=25)
    assert AskToLeave("g", "m").answer(LeaveGroupResponse(error_code=0, members=[row]), 3) == 25


def test_answer_that_leaves_the_group_out_is_an_error() -> None:
    """Since version 8 OffsetFetch answers for many groups."""
    question = AskCommitted("g", (T0,))
    group = OffsetFetchResponseGroup(group_id="other", topics=[])
    assert question.answer(OffsetFetchResponse(groups=[group]), 8).error == -1
