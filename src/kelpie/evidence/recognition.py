"""Recognises what a file is by its content; its name is hardly used.

A text may be two things at once: a transcript holds outputs of tools among lines of a log.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from kelpie.evidence import properties
from kelpie.evidence.describes import looks_like_output
from kelpie.evidence.files import EvidenceFile
from kelpie.evidence.logs.layouts import parse_head
from kelpie.evidence.logs.lines import encoding_of, is_text, read_lines
from kelpie.evidence.mapping_dumps import looks_like_mappings
from kelpie.evidence.scrapes import looks_like_scrape
from kelpie.evidence.segments import is_segment
from kelpie.evidence.snapshot_files import is_snapshot
from kelpie.evidence.zookeeper_dumps import is_dump

_COMPANION = re.compile(
    r"(?:\.(?:index|timeindex|txnindex|snapshot|lock)|[.-]checkpoint|partition\.metadata|cleaned)\Z"
)
"""Names of files that lie beside segments on a broker's disk. They are not used."""
_LOOKED_AT = 400


class Kind(StrEnum):
    SEGMENT = "segment"
    COMPANION = "companion"
    """Lies beside segments, and is of no use."""
    CONFIGURATION = "configuration"
    SCRAPE = "scrape"
    SURVEY = "survey"
    """A snapshot that `kelpie collect` took."""
    ZOOKEEPER = "zookeeper"
    """What Kafka keeps in ZooKeeper, dumped."""
    MAPPINGS = "mappings"
    """KoP's mapping of clients to groups, listed in ZooKeeper."""
    OUTPUT = "output"
    LOG = "log"
    """It has to be read to be sure: every text that is nothing else may be one."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a file is. Without a kind, `reason` says why it is of no use."""

    kinds: frozenset[Kind] = frozenset()
    reason: str = ""
    encoding: str = "utf-8"
    beginning: Sequence[str] = field(default=(), repr=False)
    """Its first lines, if it is a text."""


def recognise(file: EvidenceFile) -> Recognised:
    """Raises OSError when the file cannot be read."""
    if not file.head:
        beside = _COMPANION.search(file.base) or file.base.endswith(".log")
        return _only(Kind.COMPANION) if beside else Recognised(reason="It is empty.")
    if is_segment(file.head):
        return _only(Kind.SEGMENT)
    if _COMPANION.search(file.base):
        return _only(Kind.COMPANION)
    if is_snapshot(file.head):
        return _only(Kind.SURVEY)
    if is_dump(file.head):
        return _dump(file)
    if not is_text(file.head):
        return Recognised(reason="It is binary, and neither a log segment nor an archive.")
    encoding = encoding_of(file.head)
    beginning = list(islice(read_lines(file.path, encoding), _LOOKED_AT))
    return Recognised(_of_text(file, beginning), "", encoding, beginning)


def _of_text(file: EvidenceFile, beginning: Sequence[str]) -> frozenset[Kind]:
    if properties.looks_like_broker(beginning) or properties.looks_like_consumer(beginning):
        return frozenset({Kind.CONFIGURATION})
    if looks_like_scrape(beginning):
        return frozenset({Kind.SCRAPE})
    if looks_like_mappings(beginning):
        return frozenset({Kind.MAPPINGS})
    if not looks_like_output(beginning, file.name):
        return frozenset({Kind.LOG})
    mixed = any(parse_head(line) is not None for line in beginning)
    return frozenset({Kind.OUTPUT, Kind.LOG} if mixed else {Kind.OUTPUT})


def _dump(file: EvidenceFile) -> Recognised:
    """A listing in a text may be followed by outputs of tools that were run at the same time."""
    if not is_text(file.head) or file.head.lstrip()[:1] in (b"{", b"["):
        return _only(Kind.ZOOKEEPER)
    encoding = encoding_of(file.head)
    beginning = list(islice(read_lines(file.path, encoding), _LOOKED_AT))
    kinds = {Kind.ZOOKEEPER, Kind.OUTPUT} if looks_like_output(beginning, "") else {Kind.ZOOKEEPER}
    return Recognised(frozenset(kinds), "", encoding, beginning)


def _only(kind: Kind) -> Recognised:
    return Recognised(frozenset({kind}))
