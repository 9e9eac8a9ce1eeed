"""The files that `kelpie collect` writes: one survey of a cluster each, lines of JSON under gzip.

    {"format":"kelpie survey","version":1,"cluster":"…","begun":…,"ended":…,"bootstrap":"…","rows":…}
    ["broker",{"node_id":1,"host":"10.0.0.1","port":9092,"alive":true,…}]
    ["committed",{"group":"billing","topic":"orders","partition":0,"offset":42,…}]

The first line is the header, the others are rows of observations (`observations.encoding`). A file has
settings only when they differ from those of the file before. A file that ends early, or has another format,
is not used at all: `Torn` says why. `snapshot_choice` says which of many snapshots the doctor uses.
"""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import IO, Any

from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.observations.checking import fits
from kelpie.observations.encoding import KINDS, decode, encode, rows_of
from kelpie.places import Place

FORMAT = "kelpie survey"
VERSION = 1
ENDING = ".jsonl.gz"
_LONGEST_LINE = 1 << 25
_GZIP = b"\x1f\x8b"
_HEAD = 1 << 16
_PLAIN = b'{"format":"' + FORMAT.encode()
_BEGINNINGS = tuple(f'["{kind}",{{' for kind in KINDS)
_BROKEN = (EOFError, ValueError, zlib.error, gzip.BadGzipFile, KeyError, TypeError, RecursionError)


class Torn(Exception):
    """The file is not a whole snapshot. The text says why."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line."""

    cluster: str
    """Its id. Its addresses where the release has no ids, or no broker has answered yet."""
    begun: Instant
    ended: Instant
    bootstrap: str = ""
    rows: int = 0
    answered: int = 0
    """How many brokers answered. 0: the survey failed."""
    unasked: int = 0
    """How many questions remained without an answer."""
    has_settings: bool = False
    """Whether the file has settings. If not, those of the snapshot before still hold."""


def pack(header: Header, survey: Observations) -> bytes:
    """A whole file. `rows` of the header is counted here."""
    lines = [json.dumps([kind, encode(row)], separators=(",", ":")) + "\n" for kind, row in rows_of(survey)]
    text = "".join([header_line(replace(header, rows=len(lines))), "\n", *lines])
    return gzip.compress(text.encode("ascii"), 6, mtime=0)


def header_line(header: Header) -> str:
    return json.dumps({"format": FORMAT, "version": VERSION, **asdict(header)}, separators=(",", ":"))


def is_snapshot(head: bytes) -> bool:
    """Whether a file that begins like this is a snapshot, or a part of one."""
    return beginning(head).startswith(_PLAIN)


def header_of(head: bytes) -> Header:
    """Of the first bytes of a file. Raises Torn."""
    line, newline, _ = beginning(head).partition(b"\n")
    if not newline:
        raise Torn("It is cut off within its first line.")
    return parse_header(line)


def read_snapshot(path: Place, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[str, Any]]:
    """The rows with their kinds, in order. Raises Torn, at the latest at the end.

    `wanted` decides by the beginning of each line whether the line is parsed.
    """
    for kind, data, _ in read_plain(path, wanted):
        yield kind, decode(kind, data)


def read_plain(
    path: Place, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """As `read_snapshot`, but not decoded: kind, fields, and the fields as JSON text."""
    count = 0
    try:
        with _opened(path) as file:
            header = parse_header(file.readline(_HEAD))
            while line := file.readline(_LONGEST_LINE):
                if not line.endswith(b"\n"):
                    raise Torn(f"It ends within line {count + 2}.")
                count += 1
                text = line.decode("ascii")
                if not text.startswith(_BEGINNINGS):
                    raise Torn(f"Line {count + 1} is no row that this release knows.")
                if wanted(text):
                    kind, data = json.loads(text)
                    if not fits(kind, data):
                        raise Torn(f"Line {count + 1} is no row that this release knows.")
                    yield kind, data, text[text.index("{") : text.rindex("}") + 1]
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise Torn(f"It is damaged: {error}.") from None
        raise
    except _BROKEN as error:
        raise Torn(f"It is damaged behind line {count + 1}: {error or type(error).__name__}.") from None
    if count != header.rows:
        raise Torn(f"It has {count:,} rows, and says that it has {header.rows:,}.")


def parse_header(line: bytes) -> Header:
    """Raises Torn."""
    if not line.startswith(_PLAIN):
        raise Torn("It does not begin as a snapshot does.")
    try:
        values = json.loads(line)
        version = values["version"]
        known = {field.name for field in fields(Header)}
        header = Header(**{name: value for name, value in values.items() if name in known})
    except _BROKEN:
        raise Torn("Its first line cannot be read.") from None
    if version != VERSION:
        raise Torn(f"It has version {version} of the format; this release reads version {VERSION}.")
    numbers = (header.begun, header.ended, header.rows, header.answered, header.unasked)
    texts = (header.cluster, header.bootstrap)
    if not all(type(number) is int and 0 <= number < 1 << 53 for number in numbers) or not all(
        isinstance(text, str) for text in texts
    ):
        raise Torn("Its first line has values of other types than it should have.")
    return header


def beginning(head: bytes) -> bytes:
    """How a file begins when it is decompressed. `head`: its first bytes."""
    if not head.startswith(_GZIP):
        return head[:_HEAD]
    try:
        return zlib.decompressobj(wbits=31).decompress(head, _HEAD)
    except zlib.error:
        return b""


@contextmanager
def _opened(path: Place) -> Iterator[IO[bytes]]:
    """Opens a snapshot, also one that a person has decompressed."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if packed:
            with io.BufferedReader(gzip.open(file, "rb")) as unpacked:
                yield unpacked
        else:
            yield file
