"""A whole segment at once: files in tests are small."""

from io import BytesIO
from pathlib import Path

import pyarrow as pa

from kelpie.pipeline.decoding.columns import COMMITS, MARKERS, OTHERS
from kelpie.pipeline.decoding.segment import Read, Reader, lowest_offset


def read_segment(path: Path) -> Read:
    with path.open("rb") as file:
        return _joined(Reader(file, lowest=lowest_offset(path)))


def read_bytes(data: bytes) -> Read:
    return _joined(Reader(BytesIO(data)))


def _joined(reader: Reader) -> Read:
    pieces = list(reader)
    return Read(
        pa.concat_tables([COMMITS.empty_table(), *(piece.commits for piece in pieces)]),
        pa.concat_tables([OTHERS.empty_table(), *(piece.others for piece in pieces)]),
        pa.concat_tables([MARKERS.empty_table(), *(piece.markers for piece in pieces)]),
        tuple(unread for piece in pieces for unread in piece.unread),
    )
