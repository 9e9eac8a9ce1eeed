"""What a peer sends has its limits: objects are counted, and long messages are not explained."""

from typing import Any

import pytest

from kelpie.wire import compiler
from kelpie.wire.api.list_groups import ListedGroup, ListGroupsResponse
from kelpie.wire.api.offset_delete import OffsetDeleteRequest
from kelpie.wire.compiler.decode import MOST_ENTRIES
from kelpie.wire.compiler.source import uvarint
from kelpie.wire.malformed import Malformed

FLEXIBLE = 4
"""Of ListGroups."""


def long_listing(names: list[str]) -> bytes:
    groups = [ListedGroup(group_id=name, protocol_type="consumer", group_state="Stable") for name in names]
    return compiler.encode(ListGroupsResponse(error_code=0, groups=groups), FLEXIBLE)


def test_more_entries_than_the_budget_are_refused_before_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four bytes of an empty group become an object of hundreds."""
    monkeypatch.setattr(compiler, "Explainer", None)
    raw = bytes(4) + bytes(2) + uvarint(MOST_ENTRIES + 2) + b"\x01\x01\x01\x00" * (MOST_ENTRIES + 1) + b"\x00"
    with pytest.raises(Malformed, match=f"more than {MOST_ENTRIES} entries"):
        compiler.decode(ListGroupsResponse, FLEXIBLE, raw)


def test_entries_of_all_lists_count_together() -> None:
    """A list of lists that are small each. OffsetDelete: topics with partitions that are quick to make."""
    half = MOST_ENTRIES // 2 + 1
    topic = bytes(2) + half.to_bytes(4) + bytes(4) * half
    raw = bytes(2) + (2).to_bytes(4) + topic
    with pytest.raises(Malformed, match="entries"):
        compiler.decode(OffsetDeleteRequest, 0, raw + topic)


@pytest.mark.parametrize("lost", [1, 1000])
def test_a_long_message_that_breaks_off_is_refused_without_an_explanation(
    monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """To explain a megabyte takes seconds, in which no time limit would be kept."""
    raw = long_listing([f"group-{at}" for at in range(60_000)])
    assert len(raw) > compiler.MOST_EXPLAINED
    monkeypatch.setattr(compiler, "Explainer", None)
    with pytest.raises(Malformed, match=r"is not looked for in so many \(at ListGroupsResponse v4"):
        compiler.decode(ListGroupsResponse, FLEXIBLE, raw[:-lost])


def test_a_short_message_that_breaks_off_is_explained() -> None:
    """The field and the byte."""
    raw = long_listing(["alpha", "beta"])
    with pytest.raises(Malformed, match=r"groups\.\[1\]"):
        compiler.decode(ListGroupsResponse, FLEXIBLE, raw[:-3])


def test_a_name_that_is_not_utf8_is_read_in_a_long_message_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers take such names. One of them must not hide all the other groups of a large cluster."""
    raw = long_listing(["gr\u00fcn", *(f"group-{at}" for at in range(60_000))])
    raw = raw.replace("gr\u00fcn".encode(), b"gr\xed\xa0n")
    monkeypatch.setattr(compiler, "Explainer", None)
    decoded: Any = compiler.decode(ListGroupsResponse, FLEXIBLE, raw)
    assert decoded.groups[0].group_id.startswith("gr\ufffd")
    assert len(decoded.groups) == 60_001
