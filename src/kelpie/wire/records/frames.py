"""How large can an LZ4 or zstd frame become when it is inflated? Known from its blocks, before inflating any.

Neither format has to say its size, Kafka's producers do not, and the library can only inflate into a buffer
of a size given beforehand. Every block says how long it is, though, and the formats bound what a block can
yield. So a walk from block to block, which costs nothing next to inflating them, gives a bound: for what
producers write, the right size rounded up to whole blocks.

Formats: the LZ4 frame format 1.6, RFC 8878 for zstd.
"""

import struct

from kelpie.wire.malformed import Malformed

_U32 = struct.Struct("<I")

_LZ4_MAGIC = 0x184D2204
_LZ4_LARGEST_BLOCKS = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_LZ4_BEST_RATIO = 255  # A byte of a match length stands for at most 255 bytes.

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_LARGEST_BLOCK = 1 << 17
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_COMPRESSED = 0, 1, 2
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_DICTIONARY_BYTES = (0, 1, 2, 4)


class _Cut(Exception):
    """The frame ends before its blocks do."""


def _u32(data: memoryview, position: int) -> int:
    if position + 4 > len(data):
        raise _Cut
    return int(_U32.unpack_from(data, position)[0])


def lz4_bound(data: memoryview, where: int) -> int:
    """At most how many bytes the one LZ4 frame in `data` yields. `where` is for messages."""
    try:
        bound, end = _lz4_walk(data, where)
    except _Cut:
        raise Malformed("an LZ4 frame that is cut short", offset=where) from None
    if end != len(data):
        # Kafka reads one frame, and ignores what follows.
        raise Malformed(f"{len(data) - end} bytes after the LZ4 frame", offset=where)
    return bound


def _lz4_walk(data: memoryview, where: int) -> tuple[int, int]:
    if _u32(data, 0) != _LZ4_MAGIC:
        raise Malformed("no LZ4 frame", offset=where)
    position = _lz4_descriptor_end(data) + 1
    flags = data[4]
    largest_block = _LZ4_LARGEST_BLOCKS.get(data[5] >> 4 & 7)
    if largest_block is None:
        raise Malformed("an LZ4 frame with an unknown block size", offset=where)
    checksum = 4 if flags & 0x10 else 0
    bound = 0
    while block := _u32(data, position):
        size = block & 0x7FFFFFFF
        bound += size if block & 0x80000000 else min(largest_block, _LZ4_BEST_RATIO * size)
        position += 4 + size + checksum
    position += 4 + (4 if flags & 0x04 else 0)
    if position > len(data):
        raise _Cut
    return bound, position


def _lz4_descriptor_end(data: memoryview) -> int:
    """Where the checksum of the frame's descriptor is."""
    if len(data) < 7:
        raise _Cut
    flags = data[4]
    end = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    if end >= len(data):
        raise _Cut
    return end


def lz4_with_right_checksum(data: memoryview, where: int) -> bytes:
    """Put the checksum of the frame's descriptor right.

    Up to 0.9, Kafka's clients took it over the magic bytes as well (KAFKA-3160). Frames like that live on in
    messages of magic 0; newer Kafka does not look at the checksum there, and LZ4's own library refuses it.
    """
    try:
        end = _lz4_descriptor_end(data)
    except _Cut:
        raise Malformed("an LZ4 frame that is cut short", offset=where) from None
    fixed = bytearray(data)
    fixed[end] = _descriptor_checksum(fixed[4:end])
    return bytes(fixed)


def lz4_with_kafka_09_checksum(frame: bytes) -> bytes:
    """Put the descriptor's checksum wrong, the way that Kafka up to 0.9 expects it."""
    end = _lz4_descriptor_end(memoryview(frame))
    return frame[:end] + bytes([_descriptor_checksum(frame[:end])]) + frame[end + 1 :]


def _descriptor_checksum(descriptor: bytes | bytearray) -> int:
    return _xxh32_of_a_few(descriptor) >> 8 & 0xFF


_P1, _P2, _P3, _P4, _P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


def _rotate(value: int, by: int) -> int:
    value &= 0xFFFFFFFF
    return (value << by | value >> 32 - by) & 0xFFFFFFFF


def _xxh32_of_a_few(data: bytes | bytearray) -> int:
    """Hash with xxHash32, seed 0, for less than 16 bytes: all that a descriptor has."""
    assert len(data) < 16
    hashed = _P5 + len(data)
    words = len(data) // 4 * 4
    for position in range(0, words, 4):
        hashed = _rotate(hashed + _U32.unpack_from(data, position)[0] * _P3, 17) * _P4
    for byte in data[words:]:
        hashed = _rotate(hashed + byte * _P5, 11) * _P1
    hashed &= 0xFFFFFFFF
    hashed = (hashed ^ hashed >> 15) * _P2 & 0xFFFFFFFF
    hashed = (hashed ^ hashed >> 13) * _P3 & 0xFFFFFFFF
    return hashed ^ hashed >> 16


def zstd_bound(data: memoryview, where: int) -> int:
    """At most how many bytes the zstd frames in `data` yield."""
    bound = position = 0
    try:
        while position < len(data):
            more, position = _zstd_walk(data, position, where)
            bound += more
    except _Cut:
        raise Malformed("a zstd frame that is cut short", offset=where) from None
    return bound


def _zstd_walk(data: memoryview, position: int, where: int) -> tuple[int, int]:
    magic = _u32(data, position)
    if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
        end = position + 8 + _u32(data, position + 4)
        if end > len(data):
            raise _Cut
        return 0, end
    if magic != _ZSTD_MAGIC:
        raise Malformed("no zstd frame", offset=where)
    if position + 5 > len(data):
        raise _Cut
    descriptor = data[position + 4]
    single_segment = descriptor >> 5 & 1
    content_size = _ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6]
    if single_segment:
        content_size = max(1, content_size)
    position += 5 + (1 - single_segment) + _ZSTD_DICTIONARY_BYTES[descriptor & 3] + content_size
    bound = 0
    last = 0
    while not last:
        if position + 3 > len(data):
            raise _Cut
        block = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        position += 3
        if size > _ZSTD_LARGEST_BLOCK or kind > _ZSTD_COMPRESSED:
            raise Malformed("a zstd block that no encoder writes", offset=where)
        bound += _ZSTD_LARGEST_BLOCK if kind == _ZSTD_COMPRESSED else size
        position += 1 if kind == _ZSTD_RLE else size
    position += 4 if descriptor & 4 else 0
    if position > len(data):
        raise _Cut
    return bound, position
