"""Snapshots that `kelpie collect` takes of a cluster: one survey in one file, lines of JSON under gzip.

    {"format":"kelpie survey","version":1,"cluster":"…","begun":…,"ended":…,"bootstrap":"…","rows":…}
    ["broker",{"node_id":1,"host":"10.0.0.1","port":9092,"alive":true,…}]
    ["committed",{"group":"billing","topic":"orders","partition":0,"offset":42,…}]

The first line tells what it is, the others are rows of observations (`observations.encoding`). Settings are
in a file only when they differ from what the file before had. A file that ends early, or is of another make,
is not believed at all: `Torn` says why. Which of many snapshots the doctor looks at is the business of
`looks`.
"""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

from kelpie.model.time import Instant
from kelpie.observations import Observations
from kelpie.observations.checking import fits
from kelpie.observations.encoding import KINDS, add, decode, encode, rows_of

FORMAT = "kelpie survey"
VERSION = 1
KNOWN = "known"
"""A group that only the collector still knows of: no broker lists it any more."""
ENDING = ".jsonl.gz"
_LONGEST_LINE = 1 << 28
_GZIP = b"\x1f\x8b"
_HEAD = 1 << 16
_PLAIN = b'{"format":"' + FORMAT.encode()
_BEGINNINGS = tuple(f'["{kind}",{{' for kind in (*KINDS, KNOWN))
_BROKEN = (EOFError, ValueError, zlib.error, gzip.BadGzipFile, KeyError, TypeError, RecursionError)


class Torn(Exception):
    """The file is not a whole snapshot. The text says why."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line."""

    cluster: str
    """Its id; where a release has none, and where nobody answered yet, its addresses."""
    begun: Instant
    ended: Instant
    bootstrap: str = ""
    rows: int = 0
    answered: int = 0
    """How many brokers did. 0: the round failed as a whole."""
    unasked: int = 0
    """How many things nobody could be asked."""
    has_settings: bool = False
    """Settings are told; where not, those of the snapshot before hold."""


def pack(header: Header, found: Observations) -> bytes:
    """A whole file. `rows` of the header is counted here."""
    lines = [_line(kind, encode(row)) for kind, row in rows_of(found)]
    lines += [_line(KNOWN, {"group": it, "source": why}) for it, why in found.known_groups.items()]
    text = "".join([header_line(replace(header, rows=len(lines))), "\n", *lines])
    return gzip.compress(text.encode("ascii"), 6, mtime=0)


def header_line(header: Header) -> str:
    return json.dumps({"format": FORMAT, "version": VERSION, **asdict(header)}, separators=(",", ":"))


def is_collected(head: bytes) -> bool:
    """Whether a file that begins like this is a snapshot, or would be one if it were whole."""
    return _beginning(head).startswith(_PLAIN)


def header_of(head: bytes) -> Header:
    """Of the first bytes of a file. Raises Torn."""
    line, newline, _ = _beginning(head).partition(b"\n")
    if not newline:
        raise Torn("It is cut off within its first line.")
    return parse_header(line)


def read_collected(path: Path, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[str, Any]]:
    """The rows with their kinds, in order; of kind KNOWN a dict. Raises Torn, at the latest at the end.

    `wanted` is asked for each line, by how it begins: what is not wanted costs no more than its bytes.
    """
    for kind, data, _ in read_plain(path, wanted):
        yield kind, data if kind == KNOWN else decode(kind, data)


def read_plain(
    path: Path, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The same, as plain data: kind, fields, and the fields as they stand there. They can be decoded."""
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
                    if not (_is_known(data) if kind == KNOWN else fits(kind, data)):
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


def gathered(rows: Iterator[tuple[str, Any]]) -> Observations:
    """All rows as observations."""
    found = Observations()
    for kind, row in rows:
        take(found, kind, row)
    return found


def take(found: Observations, kind: str, row: Any) -> None:
    if kind == KNOWN:
        found.known_groups.setdefault(row["group"], row["source"])
    else:
        add(found, kind, row)


def _line(kind: str, data: object) -> str:
    return json.dumps([kind, data], separators=(",", ":")) + "\n"


def _is_known(data: Any) -> bool:
    return isinstance(data, dict) and all(isinstance(data.get(name), str) for name in ("group", "source"))


def parse_header(line: bytes) -> Header:
    """Raises Torn."""
    if not line.startswith(_PLAIN):
        raise Torn("It does not begin as a snapshot does.")
    try:
        told = json.loads(line)
        version = told["version"]
        known = {it.name for it in fields(Header)}
        header = Header(**{name: value for name, value in told.items() if name in known})
    except _BROKEN:
        raise Torn("Its first line cannot be read.") from None
    if version != VERSION:
        raise Torn(f"It has version {version} of the format; this release reads version {VERSION}.")
    numbers = (header.begun, header.ended, header.rows, header.answered, header.unasked)
    texts = (header.cluster, header.bootstrap)
    if not all(type(it) is int and 0 <= it < 1 << 53 for it in numbers) or not all(
        isinstance(it, str) for it in texts
    ):
        raise Torn("Its first line has values of other types than it should have.")
    return header


def _beginning(head: bytes) -> bytes:
    if not head.startswith(_GZIP):
        return head[:_HEAD]
    try:
        return zlib.decompressobj(wbits=31).decompress(head, _HEAD)
    except zlib.error:
        return b""


def _opened(path: Path) -> IO[bytes]:
    """Also one that somebody has unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return io.BufferedReader(gzip.open(path, "rb")) if packed else path.open("rb")
