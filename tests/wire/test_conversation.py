"""Every frame that Kafka 4.3.1's own tools and a real broker exchanged, decoded and written again."""

from collections import Counter
from collections.abc import Iterator

import pytest

from kelpie.wire.framing import (
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kelpie.wire.malformed import Malformed
from tests.recording import conversation, java_tools
from tests.recording.proxy import REQUEST, Exchanged

FRAMES = list(conversation.load(java_tools.FILE))


def paired() -> Iterator[tuple[Exchanged, RequestHeader]]:
    """Each frame with the header of its request: answers tell neither API nor version."""
    waiting: dict[tuple[int, int], RequestHeader] = {}
    for it in FRAMES:
        if it.direction == REQUEST:
            header, _ = decode_request_header(it.frame)
            waiting[it.connection, header.correlation_id] = header
            yield it, header
        else:
            correlation_id = int.from_bytes(it.frame[:4])
            yield it, waiting.pop((it.connection, correlation_id))


def test_every_recorded_frame_is_rewritten_byte_for_byte() -> None:
    """The judge is real traffic: consumers of both protocols, producers, transactions, admin tools."""
    for it, header in paired():
        if it.direction == REQUEST:
            found, message = decode_request(it.frame)
            again = encode_request(found, message)
        else:
            correlation_id, message = decode_response(header.api_key, header.api_version, it.frame)
            again = encode_response(header.api_key, header.api_version, correlation_id, message)
        assert again[4:] == it.frame, f"{it.scene}: {header} {it.direction}"


def test_the_recording_covers_what_groups_need() -> None:
    """A recording that lost a scene would make the test above say less than it seems."""
    met = Counter(header.api_key for it, header in paired() if it.direction == REQUEST)
    groups = {8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69}
    data = {0, 1, 2, 3, 18, 22, 26}
    admin = {19, 20, 21, 29, 30, 31, 32, 35, 37, 43, 44, 45, 46, 48, 49, 50, 51, 55, 60, 61, 65, 66, 75}
    assert (groups | data | admin) - set(met) == set()


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_recorded_frame_cut_short_is_malformed_not_a_crash(cut: int) -> None:
    """A connection may end at any byte."""
    for it, header in paired():
        key, version, torn = header.api_key, header.api_version, it.frame[:-cut]
        with pytest.raises(Malformed, match=r"at .*byte \d+"):
            decode_request(torn) if it.direction == REQUEST else decode_response(key, version, torn)
