"""A survey of brokers that lie ends with an answer. The lies that once ended it otherwise have a test each.

`make test` runs some hundred surveys, `make fuzz` 200,000 and more (KELPIE_FUZZ_SURVEYS).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from kelpie.client.address import Address
from kelpie.client.connection import Counters
from kelpie.client.nodes import MOST_BROKERS, Nodes
from kelpie.client.settings import Settings
from kelpie.client.survey import survey
from kelpie.lab import virtual_time
from kelpie.observations import Observations
from kelpie.wire.api.metadata import MetadataResponseBroker
from kelpie.wire.framing import decode_response, encode_response
from tests.fuzzing.mutation import runs
from tests.fuzzing.surveys import NOW, fuzz_surveys, judge
from tests.fuzzing.surveys_network import Liar
from tests.fuzzing.surveys_truth import GROUPS

SURVEYS = runs("KELPIE_FUZZ_SURVEYS", 400)
LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR = 2, 3, 9, 10
DESCRIBE_GROUPS, API_VERSIONS, DESCRIBE_PRODUCERS = 15, 18, 61

Change = Callable[[Any], object]


@dataclass(slots=True)
class Changed(Liar):
    """Tells the truth, with one change to the answers of one API."""

    changes: dict[int, Change] = field(default_factory=dict)

    def answer(self, node: int, key: int, version: int, body: bytes, kind: str) -> bytes | None:
        truth = Liar.answer(self, node, key, version, body, kind)
        change = self.changes.get(key)
        if truth is None or change is None:
            return truth
        message = decode_response(key, version, bytes(4) + truth)[1]
        change(message)
        return encode_response(key, version, 0, message)[8:]


def changed(changes: dict[int, Change], release: str = "4.3", state: str = "healthy") -> Changed:
    return Changed(Random(1), release, state, 0.0, (), False, False, 0.0, changes=changes)


def surveyed(liar: Liar) -> tuple[Observations, Counters]:
    counters = Counters()

    async def run() -> Observations:
        settings = Settings((Address("host1", 9091),), network=liar)
        async with await Nodes.open(settings, counters=counters) as nodes:
            return await survey(nodes, known=("alpha",), now=lambda: NOW)

    return virtual_time.run(run()), counters


def test_surveys_of_liars_end_with_an_answer() -> None:
    """Whatever brokers say, at whatever step: no exception; bounded time, requests, connections, memory."""
    fuzz_surveys(SURVEYS)


def test_the_truth_is_seen_whole() -> None:
    """Otherwise the fuzz would fuzz a failure: the honest cluster answers everything."""
    seen, counters = surveyed(changed({}))
    assert {row.group for row in seen.states} == set(GROUPS)
    assert {row.group for row in seen.committed} == set(GROUPS)
    assert seen.transactions
    assert not seen.unasked
    assert counters.connections == 3


def test_a_coordinator_of_a_group_that_was_not_asked_for_is_ignored() -> None:
    """FindCoordinator that answers for a foreign key. Leaders that nobody knows make the survey ask it."""

    def rename(response: Any) -> None:
        for entry in response.coordinators:
            entry.key += "-foreign"

    def move(response: Any) -> None:
        for partition in (entry for topic in response.topics for entry in topic.partitions):
            partition.leader_id = 99

    seen, _ = surveyed(changed({FIND_COORDINATOR: rename, METADATA: move}))
    assert not [row for row in seen.answers if row.asked == "FindCoordinator"]
    assert any("did not say" in row.reason for row in seen.unasked if row.kind == "broker")


@pytest.mark.parametrize("api", [DESCRIBE_GROUPS, OFFSET_FETCH])
def test_a_group_that_was_not_asked_for_is_ignored_and_one_left_out_is_named(api: int) -> None:
    """A broker that describes foreign groups, or tells their offsets, is not believed."""

    def rename(response: Any) -> None:
        for group in response.groups:
            if group.group_id == "alpha":
                group.group_id = "foreign"

    seen, _ = surveyed(changed({api: rename}))
    assert "foreign" not in {row.group for row in seen.states}
    assert "foreign" not in {row.group for row in seen.committed}
    assert "foreign" not in {row.group for row in seen.answers}
    left_out = [row for row in seen.unasked if row.name == "alpha"]
    assert [row.kind for row in left_out] == ["group"]
    assert "leaves the group out" in left_out[0].reason


def test_a_group_that_is_answered_for_twice_counts_once() -> None:
    """The first answer counts."""
    seen, _ = surveyed(changed({DESCRIBE_GROUPS: lambda response: response.groups.extend(response.groups)}))
    assert sorted(row.group for row in seen.states) == sorted(GROUPS)


def test_a_broker_without_an_api_that_a_survey_needs_is_named() -> None:
    """ApiVersions without OffsetFetch."""

    def drop(response: Any) -> None:
        response.api_keys = [entry for entry in response.api_keys if entry.api_key != OFFSET_FETCH]

    seen, _ = surveyed(changed({API_VERSIONS: drop}))
    assert not seen.committed
    assert {row.name for row in seen.unasked if "does not know OffsetFetch" in row.reason} == set(GROUPS)


@pytest.mark.parametrize("at", [2**63 - 1, -(2**63), 253_402_300_800_000])
def test_a_time_that_no_calendar_has_is_no_time(at: int) -> None:
    """Times of records and of producers are what clients wrote."""

    def stamp_logs(response: Any) -> None:
        for partition in (entry for topic in response.topics for entry in topic.partitions):
            partition.timestamp = at

    def stamp_producers(response: Any) -> None:
        for partition in (entry for topic in response.topics for entry in topic.partitions):
            for producer in partition.active_producers:
                producer.last_timestamp = at

    seen, _ = surveyed(changed({LIST_OFFSETS: stamp_logs, DESCRIBE_PRODUCERS: stamp_producers}))
    assert seen.transactions
    assert {row.last_written for row in seen.transactions} == {None}
    judge(seen)


@pytest.mark.parametrize("newest", [-5, -32_768, 0, 32_767])
def test_versions_that_cannot_be_are_asked_in_the_oldest(newest: int) -> None:
    """A refusal of ApiVersions names −5 as its newest version: KIP-511 has the client ask again in it."""
    asked: list[int] = []
    refusal = b"\x00\x23" + (1).to_bytes(4) + b"\x00\x12\x00\x00" + newest.to_bytes(2, signed=True)

    @dataclass(slots=True)
    class Refusing(Changed):
        def answer(self, node: int, key: int, version: int, body: bytes, kind: str) -> bytes | None:
            if key == API_VERSIONS:
                asked.append(version)
                if version > 0:
                    return refusal
            return Changed.answer(self, node, key, version, body, kind)

    seen, _ = surveyed(Refusing(Random(1), "4.3", "healthy", 0.0, (), False, False, 0.0))
    assert len(seen.states) == len(GROUPS)
    assert min(asked) == 0


def test_brokers_that_name_new_brokers_for_ever_are_not_followed_for_ever() -> None:
    """Each answer names a broker more, at a new address. It was a port scanner, and had no end."""
    liar = changed({})
    liar.new_nodes = True
    seen, counters = surveyed(liar)
    assert counters.connections < 60
    assert any("still name others" in row.reason for row in seen.unasked if row.kind == "broker")
    assert {row.group for row in seen.states} == set(GROUPS)


def test_more_brokers_than_a_cluster_has_are_left_out() -> None:
    """One answer names 5,000 brokers. A connection to each would take more files than a process may open."""

    def name_many(response: Any) -> None:
        response.brokers += [
            MetadataResponseBroker(node_id=node, host="nowhere", port=node, rack=None)
            for node in range(1000, 6000)
        ]

    liar = changed({METADATA: name_many})
    seen, _ = surveyed(liar)
    tried = {row.node_id for row in seen.brokers if row.alive is False}
    assert len(tried) == MOST_BROKERS - 3
    assert any("more brokers than" in row.reason for row in seen.unasked if row.kind == "broker")
    assert {row.group for row in seen.states} == set(GROUPS)
    assert liar.most_dials <= 100
