"""The codecs of record batches: gzip, snappy, LZ4, zstd.

Inflating is bounded. A batch of a few kilobytes can claim gigabytes (zstd packs a thousand to one and
more), so each codec first finds out how much there can be, and never gets room for more than the limit.
"""

import struct
import zlib
from collections.abc import Callable

import cramjam

from kelpie.wire.malformed import Malformed, TooLarge
from kelpie.wire.records.attributes import Codec
from kelpie.wire.records.frames import (
    lz4_bound,
    lz4_with_kafka_09_checksum,
    lz4_with_right_checksum,
    zstd_bound,
)

INFLATED_LIMIT = 256 * 1024 * 1024
"""The default limit of one inflated batch.

A batch holds a megabyte by default (message.max.bytes), and a record counts with its full size before it is
compressed (max.request.size), so real batches inflate to a few megabytes; this leaves room for clusters
with limits a hundred times as high. More would not protect an executor or a laptop that reads several
batches at a time.
"""

_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib reads and writes gzip's own header when 16 is added.
_GZIP_PIECE = 1 << 16

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">I")
# The best that snappy can do is to repeat 64 bytes at the cost of 3.
_SNAPPY_BEST_RATIO = 22


def inflate(codec: Codec, data: memoryview, *, magic: int, limit: int, where: int) -> bytes | memoryview:
    """Inflate `data`. `where` is its position, for messages. Raise Malformed for more than `limit` bytes."""
    if codec is Codec.GZIP:
        return _inflate_gzip(data, limit, where)
    if codec is Codec.SNAPPY:
        return _inflate_snappy(data, limit, where)
    if codec is Codec.LZ4:
        bound = lz4_bound(data, where)
        frame = lz4_with_right_checksum(data, where) if magic == 0 else data
        return _inflate_frames(cramjam.lz4.decompress_into, frame, bound, limit, where)
    if codec is Codec.ZSTD:
        if magic < 2:
            raise Malformed(f"zstd in a message of magic {magic}", offset=where)
        return _inflate_frames(cramjam.zstd.decompress_into, data, zstd_bound(data, where), limit, where)
    return data


def _too_much(limit: int, where: int) -> TooLarge:
    return TooLarge(f"the records inflate to more than {limit} bytes", offset=where)


def _inflate_gzip(data: memoryview, limit: int, where: int) -> bytes:
    inflated: list[bytes] = []
    room = limit
    position = 0
    while position < len(data):  # A stream may have several members.
        inflater = zlib.decompressobj(_GZIP_WINDOW)
        while not inflater.eof:
            # Piece by piece: what a member leaves over is copied, and a hostile stream has many members.
            piece = data[position : position + _GZIP_PIECE]
            if not piece:
                raise Malformed("a gzip stream that is cut short", offset=where)
            try:
                chunk = inflater.decompress(piece, room + 1)  # 0 would mean: without a limit
            except zlib.error as error:
                raise Malformed(f"not a gzip stream: {error}", offset=where) from None
            room -= len(chunk)
            if room < 0:
                raise _too_much(limit, where)
            inflated.append(chunk)
            position += len(piece) - len(inflater.unused_data)
    return inflated[0] if len(inflated) == 1 else b"".join(inflated)


def _inflate_snappy(data: memoryview, limit: int, where: int) -> bytes | memoryview:
    # Kafka's Java client writes the framing of xerial's snappy-java, others plain snappy; both are read.
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _inflate_snappy_block(data, limit, limit, where)
    inflated: list[bytes | memoryview] = []
    room = limit
    position = 0
    while position < len(data):
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            # Streams may be joined. Versions are not checked: some writers get their byte order wrong.
            position += len(_XERIAL_HEADER)
            continue
        if position + 4 > len(data):
            raise Malformed("a snappy stream that is cut short", offset=where)
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += 4
        if length > len(data) - position:
            raise Malformed("a snappy block that is cut short", offset=where)
        block = _inflate_snappy_block(data[position : position + length], room, limit, where)
        inflated.append(block)
        room -= len(block)
        position += length
    return b"".join(inflated)


def _inflate_frames(
    decompress_into: Callable[[bytes | memoryview, bytearray], int],
    data: bytes | memoryview,
    bound: int,
    limit: int,
    where: int,
) -> memoryview:
    inflated = bytearray(min(bound, limit))
    try:
        size = decompress_into(data, inflated)
    except cramjam.DecompressionError as error:
        if bound > limit and "failed to write whole buffer" in str(error):
            raise _too_much(limit, where) from None
        raise Malformed(str(error), offset=where) from None
    return memoryview(inflated)[:size]


def _inflate_snappy_block(data: memoryview, room: int, limit: int, where: int) -> memoryview:
    try:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > room:
            raise _too_much(limit, where)
        if size > _SNAPPY_BEST_RATIO * len(data):
            raise Malformed(f"{len(data)} bytes of snappy that claim to hold {size}", offset=where)
        inflated = bytearray(size)
        cramjam.snappy.decompress_raw_into(data, inflated)
    except cramjam.DecompressionError as error:
        raise Malformed(str(error), offset=where) from None
    return memoryview(inflated)


def compress(codec: Codec, data: bytes, *, magic: int) -> bytes:
    """Compress `data` the way that Kafka's Java client does; the same bytes for the same data, always."""
    if codec is Codec.GZIP:
        compressor = zlib.compressobj(wbits=_GZIP_WINDOW)  # With a time stamp of 0, unlike Python's gzip.
        return compressor.compress(data) + compressor.flush()
    if codec is Codec.SNAPPY:
        blocks = [_XERIAL_HEADER]
        for start in range(0, len(data), _XERIAL_BLOCK):
            block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
            blocks += _BLOCK_LENGTH.pack(len(block)), block
        return b"".join(blocks)
    if codec is Codec.LZ4:
        # Kafka's reader in Java refuses blocks that refer to each other (KIP-57).
        lz4 = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        lz4.compress(data)
        frame = bytes(lz4.finish())
        return lz4_with_kafka_09_checksum(frame) if magic == 0 else frame
    if codec is Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3))  # Kafka's default level
    return data
