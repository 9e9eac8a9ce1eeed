"""The notation and the compiler, on small schemas made for the purpose."""

import tracemalloc
from typing import cast

import pytest

from kelpie.wire.api.find_coordinator import FindCoordinatorRequest
from kelpie.wire.api.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from kelpie.wire.compiler import decode, encode
from kelpie.wire.malformed import Malformed, Unencodable
from kelpie.wire.schema import Int8, Int16, Int32, Versions, data, field, struct


@struct
class Inner:
    number: Int32
    since_one: Int8 = field("1+", default=-1)


@data(versions="0-2", flexible="2+")
class Outer:
    name: str | None = field(nullable="1+", default="")
    numbers: list[Int16]
    inners: list[Inner] | None
    optional: Inner | None = field("1+", default=None)
    remark: str | None = field("2+", tag=3, default=None)
    shape: Inner | None = field("2+", tag=1, default=None)


FULL = Outer(
    name="é",
    numbers=[1, -2],
    inners=[Inner(number=7, since_one=3)],
    optional=Inner(number=8, since_one=4),
    remark="hi",
    shape=Inner(number=9, since_one=5),
)


def test_fields_are_written_only_in_their_versions() -> None:
    """One class serves all versions; what a version lacks keeps its default."""
    assert encode(FULL, 0) == bytes.fromhex("0002 c3a9 00000002 0001 fffe 00000001 00000007")
    assert decode(Outer, 0, encode(FULL, 0)) == Outer(
        name="é", numbers=[1, -2], inners=[Inner(number=7)], optional=None
    )
    assert encode(FULL, 1) == bytes.fromhex(
        "0002 c3a9 00000002 0001 fffe 00000001 00000007 03 01 00000008 04"
    )


def test_flexible_versions_use_short_lengths_and_tags_in_order() -> None:
    """KIP-482: lengths plus one as varints, tagged fields by number, absent when default."""
    assert encode(FULL, 2) == bytes.fromhex(
        "03 c3a9 03 0001 fffe 02 00000007 03 00 01 00000008 04 00 02 01 06 00000009 05 00 03 03 03 6869"
    )
    assert decode(Outer, 2, encode(FULL, 2)) == FULL


def test_unknown_tagged_fields_are_skipped() -> None:
    """A newer peer may say more than we understand."""
    raw = bytes.fromhex("01 01 00 ff 02 03 03 03 6869 63 02 cafe")
    assert decode(Outer, 2, raw) == Outer(name="", numbers=[], inners=None, remark="hi")


def test_null_is_refused_where_the_version_knows_no_null() -> None:
    """A null that slips through would surface far from where it came in."""
    raw = bytes.fromhex("ffff 00000000 ffffffff")
    with pytest.raises(Malformed, match="null where the field cannot be null") as caught:
        decode(Outer, 0, raw)
    assert (caught.value.path, caught.value.offset) == ("Outer v0.name", 0)
    with pytest.raises(Unencodable):
        encode(Outer(name=None, numbers=[], inners=None), 0)


@pytest.mark.parametrize(
    ("raw", "path", "offset", "reason"),
    [
        ("0002 c3", "Outer v0.name", 2, "2 bytes are needed and 1 are left"),
        ("0000 7fffffff", "Outer v0.numbers", 2, "2147483647 elements cannot fit"),
        ("0000 fffffffe", "Outer v0.numbers", 2, "length -2 is negative"),
        ("0000 00000000 00000002 00000001 0000", "Outer v0.inners", 6, "2 elements cannot fit"),
        ("0000 00000000 ffffffff cafe", "Outer v0", 10, "2 bytes are left over"),
        ("", "Outer v0.name", 0, "2 bytes are needed and 0 are left"),
    ],
)
def test_a_malformed_message_says_where_it_broke(raw: str, path: str, offset: int, reason: str) -> None:
    """Whoever debugs a client needs field and byte, not an IndexError."""
    with pytest.raises(Malformed, match=reason) as caught:
        decode(Outer, 0, bytes.fromhex(raw))
    assert (caught.value.path, caught.value.offset) == (path, offset)


def test_a_tagged_field_of_the_wrong_size_is_refused() -> None:
    """Its size and its content are two truths; they must agree."""
    with pytest.raises(Malformed, match="tagged field 3 is 3 bytes long, not 4"):
        decode(Outer, 2, bytes.fromhex("01 01 00 ff 01 03 04 03 6869 00"))


def test_a_string_that_is_not_utf8_is_read_as_java_reads_it() -> None:
    """librdkafka sends group names as the bytes it was given; a real broker takes them."""
    assert decode(FindCoordinatorRequest, 0, bytes.fromhex("0003 61ff62")).key == "a\ufffdb"


def test_a_huge_count_costs_no_memory() -> None:
    """Lengths are checked against what is left before anything is made."""
    tracemalloc.start()
    for raw in ("0000 7fffffff 00", "0000 00000000 7fffffff 00"):
        with pytest.raises(Malformed):
            decode(Outer, 0, bytes.fromhex(raw))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_field_that_would_be_lost_is_refused() -> None:
    """Asking for a transaction's coordinator in version 0 would ask for a group of that name."""
    with pytest.raises(Unencodable, match="FindCoordinatorRequest v0 cannot carry key_type"):
        encode(FindCoordinatorRequest(key="tx", key_type=1), 0)


@pytest.mark.parametrize(
    "message",
    [
        Outer(name="x" * 40_000, numbers=[], inners=[]),
        Outer(name="x", numbers=[70_000], inners=[]),
        Outer(name="\ud800", numbers=[], inners=[]),
        Outer(name="x", numbers=cast("list[int]", ["1"]), inners=[]),
    ],
)
def test_a_message_that_cannot_be_written_is_named(message: Outer) -> None:
    """Whoever built it gets the message back, not a struct.error."""
    with pytest.raises(Unencodable, match="Outer v0"):
        encode(message, 0)


def test_a_version_that_does_not_exist_is_named() -> None:
    """A wrong version is a caller's mistake."""
    with pytest.raises(ValueError, match="Outer has versions 0-2, not 3"):
        encode(FULL, 3)


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 300])
@pytest.mark.parametrize("version", [7, 12])
def test_arrays_of_numbers_of_any_length_come_back(count: int, version: int) -> None:
    """Short ones are packed with the fields around them; the seams are at 127 and at the cache's end."""
    partition = MetadataResponsePartition(
        error_code=0,
        partition_index=1,
        leader_id=2,
        replica_nodes=list(range(count)),
        isr_nodes=[],
        offline_replicas=list(range(count)),
    )
    message = MetadataResponse(
        brokers=[],
        topics=[MetadataResponseTopic(error_code=0, name="t", is_internal=False, partitions=[partition])],
    )
    assert decode(MetadataResponse, version, encode(message, version)) == message


@pytest.mark.parametrize(("text", "inside", "outside"), [("3", 3, 4), ("0-3", 0, 4), ("3+", 9, 2)])
def test_version_ranges_read_as_they_are_written(text: str, inside: int, outside: int) -> None:
    """The notation of every schema file."""
    versions = Versions.parse(text)
    assert str(versions) == text
    assert inside in versions
    assert outside not in versions
