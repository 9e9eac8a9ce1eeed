"""What a file under xz holds, unpacked with a limited amount of memory.

The header of such a file says how much memory it takes to unpack it: up to 4 GiB, however small the file is.
Python's own `lzma.open` grants that.
"""

import lzma
from collections.abc import Iterator
from typing import IO, Self

MOST_MEMORY = 160 * 1024**2
"""In bytes. What `xz -9` packs takes 65 MiB."""
_PIECE = 1 << 16


class NeedsMemory(Exception):
    """To unpack a file would take more than `MOST_MEMORY`."""


class XzStream:
    """One stream of xz, or several in a row, as a file to read from."""

    def __init__(self, file: IO[bytes]) -> None:
        self._pieces = _unpacked(file)
        self._left = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """As with gzip, whoever opened the file closes it."""

    def read(self, size: int) -> bytes:
        """As many bytes as were asked for, or fewer at the end. Raises NeedsMemory, LZMAError or EOFError."""
        pieces, missing = [self._left], size - len(self._left)
        while missing > 0 and (piece := next(self._pieces, b"")):
            pieces.append(piece)
            missing -= len(piece)
        found = b"".join(pieces)
        self._left = found[size:]
        return found[:size]


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """Pieces, none of them empty."""
    packed = file.read(_PIECE)
    while packed:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
        while not stream.eof:
            if stream.needs_input and not (packed := packed or file.read(_PIECE)):
                raise EOFError("it ends in the middle of a stream")
            if piece := _next(stream, packed):
                yield piece
            packed = b""
        packed = stream.unused_data
        while not (packed := packed.lstrip(b"\0")):  # Streams may be padded with zeros.
            if not (packed := file.read(_PIECE)):
                return


def _next(stream: lzma.LZMADecompressor, packed: bytes) -> bytes:
    try:
        return stream.decompress(packed, _PIECE)
    except lzma.LZMAError as error:
        if "usage limit" in str(error):
            raise NeedsMemory(f"it takes more than {MOST_MEMORY >> 20} MiB of memory to unpack it") from None
        raise
