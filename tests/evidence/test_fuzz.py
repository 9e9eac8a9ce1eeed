"""No reader ever raises, whatever is in a file: what cannot be read is told."""

import random
import tarfile
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelpie.evidence import read_evidence
from kelpie.evidence.archives import Budget
from kelpie.evidence.describes import looks_like_output, read_output
from kelpie.evidence.files import EvidenceFile, Search
from kelpie.evidence.folder import _Gathered, _read
from kelpie.evidence.logs import read_log
from kelpie.evidence.logs.hints import NO_HINTS
from kelpie.evidence.properties import looks_like_broker, observe, read_properties
from kelpie.evidence.segments import describe_segment, is_segment, read_segments
from kelpie.observations.offsets_topic import OffsetsPartition
from tests.evidence import unpacked

NEW, OLD = "kafka-4.3.1-coordinator-outage", "kafka-0.9.0.1-coordinator-outage"
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PIECE = 6000


@cache
def _samples() -> tuple[bytes, ...]:
    """The beginnings of real files, one of each sort."""
    names = [
        (NEW, "brokers/broker-1.log"),
        (NEW, "brokers/broker-1.properties"),
        (NEW, "brokers/controller-100.log"),
        (NEW, "clients/checkout-293.during.log"),
        (NEW, "clients/checkout-216.before.log"),
        (NEW, "clients/checkout-126.before.log"),
        (NEW, "clients/checkout-18.before.log"),
        (NEW, "commands/before-groups-members.txt"),
        (NEW, "commands/before-groups-offsets.txt"),
        (NEW, "commands/before-groups-state.txt"),
        (NEW, "commands/during-topics.txt"),
        (NEW, "commands/during-group-checkout-293.txt"),
        (NEW, "segments/broker-2/__consumer_offsets-25/00000000000000000000.log"),
        (NEW, "segments/broker-2/__consumer_offsets-30/00000000000000000000.log"),
        (OLD, "logs/broker-0.log"),
        (OLD, "logs/client-billing-1.during.log"),
        (OLD, "describe/describe-group-billing-0.txt"),
        (OLD, "segments/broker-1/__consumer_offsets-45/00000000000000000000.log"),
    ]
    made = []
    for recording, name in names:
        content = (unpacked(recording) / name).read_bytes()
        middle = len(content) // 2
        made += [content[:PIECE], content[middle : middle + PIECE]]
    return tuple(made)


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    """A real file with some bytes changed, cut out, doubled, or mixed with another one."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    content = bytearray(chance.choice(_samples()))
    for _ in range(draw(st.integers(0, 20))):
        place = chance.randrange(len(content) + 1)
        size = chance.choice((1, 1, 1, 2, 8, 100))
        match chance.randrange(5):
            case 0:
                content[place : place + size] = chance.randbytes(size)
            case 1:
                del content[place : place + size]
            case 2:
                content[place:place] = content[place : place + size] * chance.choice((1, 2, 50))
            case 3:
                other = chance.choice(_samples())
                begin = chance.randrange(len(other))
                content[place : place + size] = other[begin : begin + size * 10]
            case _:
                content[place : place + size] = chance.choice(
                    (b"\n", b"[", b"]", b"{", b"-", b"9" * 5000, b"\x00")
                )
    return bytes(content)


@SLOW
@given(_mutated())
def test_texts_of_any_content_are_read(content: bytes) -> None:
    """Logs, outputs and properties, each by every reader of texts."""
    lines = content.decode("utf-8", "replace").split("\n")
    read_log(lines, "client-x.log")
    looks_like_output(lines, "groups-list.txt")
    read_output(lines, "groups-list.txt")
    looks_like_broker(lines)
    observe(read_properties(lines), "a.properties")


@SLOW
@given(_mutated())
def test_segments_of_any_content_are_read(content: bytes) -> None:
    """Bytes off a broken disk."""
    is_segment(content)
    list(OffsetsPartition().read(content, "here"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    content=_mutated(),
    name=st.sampled_from(["a.log", "__consumer_offsets-3/00000000000000000000.log", "orders-1/5.log"]),
)
def test_a_file_of_any_content_is_taken_for_something(
    tmp_path_factory: object, content: bytes, name: str
) -> None:
    """Without the net below: what `read_evidence` would catch would be a defect, and shall show here."""
    path = Path(tmp_path_factory.mktemp("fuzz")) / "file"  # type: ignore[attr-defined]
    path.write_bytes(content)
    file = EvidenceFile(name, path, len(content), None, content[:65536])
    gathered = _Gathered()
    _read(file, gathered, NO_HINTS)
    read_segments([describe_segment(it, {}) for it in gathered.segments], {})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), cut=st.floats(0, 1))
def test_archives_of_any_content_are_unpacked(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cut: float
) -> None:
    """Flipped bits in headers, in compressed data, and an end anywhere."""
    folder = tmp_path_factory.mktemp("fuzz")
    chance = random.Random(seed)
    path = folder / "a.tar.gz"
    kinds: tuple[Literal["w", "w:gz", "w:xz"], ...] = ("w", "w:gz", "w:xz")
    with tarfile.open(path, chance.choice(kinds)) as archive:
        archive.add(unpacked(OLD) / "describe", "describe")
    content = bytearray(path.read_bytes())
    for _ in range(chance.randrange(8)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content[: int(len(content) * (0.5 + cut / 2))])
    room = folder / "room"
    room.mkdir()
    list(Search(room, Budget(bytes_left=10_000_000)).files([path]))


def test_lines_that_are_made_to_be_slow_are_not() -> None:
    """Patterns that try every way to split a line would never come to an end with these."""
    pieces = (
        "$",
        "a.",
        "[",
        "[a]",
        'Group "',
        "a:1 (",
        " - ",
        "x, ",
        "(",
        "A_",
        "{",
        "\t",
        "-1",
        "Exception",
    )
    heads = (
        "",
        "[2026-11-15 20:56:40,123] INFO ",
        "2026-11-15 20:56:40,123 INFO ",
        "%7|1794776208.861|CGRPCOORD|a#b| [thrd:main]: ",
        "[2026-11-15 20:56:40,123] INFO [Consumer clientId=c, groupId=g] Group coordinator ",
        "[2026-11-15 20:56:40,123] INFO [Consumer clientId=c, groupId=g] Auto-commit of offsets ",
        "[2026-11-15 20:56:40,123] INFO Leader ",
        "Topic: orders\tPartition: 1 ",
        "GROUP COORDINATOR (ID) STATE #MEMBERS\n",
    )
    for head in heads:
        for piece in pieces:
            lines = (head + piece * (200_000 // len(piece))).split("\n")
            read_log([*lines, *lines], "a.log")
            read_output(lines, "a.txt")
            looks_like_output(lines, "a.txt")
            looks_like_broker(lines)


def test_nothing_that_is_read_here_is_a_stumble() -> None:
    """The net of `read_evidence` has caught nothing in the recordings themselves."""
    for name in (NEW, OLD, "kafka-0.8.2.2-rebalance-failure", "kop-3.2-scrapes"):
        assert not [row for row in read_evidence([unpacked(name)]).unasked if "defect" in row.reason]
