"""All evidence there is: `read_evidence(paths)` takes folders, files and archives, and says what is in them.

A file is what its content is; names are hardly asked. Each costs only itself: what cannot be read, or is
nothing that Kelpie knows, becomes an `Unasked` row with the reason, and the rest is read all the same.
"""

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kelpie.evidence import properties
from kelpie.evidence.archives import Budget
from kelpie.evidence.dateless import settle_dates
from kelpie.evidence.dating import Dated, date_outputs, in_order, stamped
from kelpie.evidence.describes import Output, read_output
from kelpie.evidence.files import EvidenceFile, Search
from kelpie.evidence.joining import join_states
from kelpie.evidence.logs import Reading, read_log
from kelpie.evidence.logs.attribution import by_file_name
from kelpie.evidence.logs.hints import MISFIT, NO_HINTS, Hints
from kelpie.evidence.logs.lines import read_lines
from kelpie.evidence.recognition import Kind, recognise
from kelpie.evidence.segments import Segment, describe_segment, read_segments
from kelpie.evidence.snapshot_files import Torn, header_of
from kelpie.evidence.snapshots import Snapshot, read_snapshots
from kelpie.evidence.unreadable import unreadable
from kelpie.evidence.zookeeper_dumps import NoDump, observe, read_dump
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked

_META = "meta.properties"
NOTHING_KNOWN = "It is a text, and there is nothing in it that Kelpie knows."


@dataclass(slots=True)
class _Gathered:
    """What became of each file."""

    segments: list[EvidenceFile] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    outputs: list[Dated] = field(default_factory=list)
    configured: list[Observations] = field(default_factory=list)
    disks: dict[str, int] = field(default_factory=dict)
    modified: dict[str, Instant | None] = field(default_factory=dict)
    topic_names: dict[bytes, str] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    dumps: list[Observations] = field(default_factory=list)
    unasked: list[Unasked] = field(default_factory=list)


def read_evidence(
    paths: Iterable[str | Path], *, hints: Hints = NO_HINTS, unpacked: Budget | None = None
) -> Observations:
    """All rows of all files below the paths, and what could not be read, and why.

    Without a zone among the hints, what a log betrays of its own counts, else UTC. The budget bounds what
    comes out of archives.
    """
    room = Path(tempfile.mkdtemp(prefix="kelpie-evidence-"))
    try:
        search = Search(room, unpacked or Budget())
        gathered = _Gathered()
        for file in search.files(Path(path) for path in paths):
            _take(file, gathered, hints)
        found = _together(gathered)
        found.unasked[:0] = search.unasked
        return found
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _take(file: EvidenceFile, gathered: _Gathered, hints: Hints) -> None:
    """Finds out what a file is, and reads it. Nothing that is in it may cost more than the file."""
    gathered.modified[file.name] = file.modified
    try:
        reason = _read(file, gathered, hints)
    except OSError as error:
        reason = unreadable(error)
    except MemoryError:
        reason = "It needs more memory than there is."
    except Exception as error:  # One file of many, from anywhere: the others must not pay for it.
        reason = f"It made Kelpie stumble ({type(error).__name__}: {error}), which is a defect of Kelpie's."
    if reason is not None:
        gathered.unasked.append(Unasked("file", file.name, reason, source=file.name))


def _read(file: EvidenceFile, gathered: _Gathered, hints: Hints) -> str | None:
    """None, or why the file is of no use."""
    what = recognise(file)
    if Kind.SEGMENT in what.kinds:
        gathered.segments.append(file)
    if Kind.CONFIGURATION in what.kinds:
        _configuration(file, what.beginning, gathered)
    if Kind.SCRAPE in what.kinds:
        return "It is a scrape of metrics, which the doctor does not look at; kelpie pipeline run does."
    if Kind.SURVEY in what.kinds:
        try:
            gathered.snapshots[file.name] = Snapshot(file.path, header_of(file.head))
        except Torn as error:
            return str(error)
    if Kind.ZOOKEEPER in what.kinds:
        try:
            gathered.dumps.append(observe(read_dump(file.path), file.name, file.modified))
        except NoDump as error:
            return str(error)
    if Kind.OUTPUT in what.kinds:
        read = read_output(read_lines(file.path, what.encoding), file.name)
        gathered.outputs.append(Dated(read, file.modified))
        gathered.topic_names |= read.topic_ids
    if Kind.LOG in what.kinds:
        reading = read_log(read_lines(file.path, what.encoding), file.name, hints)
        if hints.layout_of(file.name) is not None and not reading.heads:
            return MISFIT
        if reading.heads or reading.found.events:
            gathered.readings.append(reading)
        elif Kind.OUTPUT not in what.kinds:
            return NOTHING_KNOWN
    return what.reason or None


def _configuration(file: EvidenceFile, lines: Sequence[str], gathered: _Gathered) -> None:
    read = properties.read_properties(lines)
    node = properties.node_id(read)
    if file.base == _META or "cluster.id" in read:
        if node is not None:
            gathered.disks[file.folder] = node
    else:
        gathered.configured.append(properties.observe(read, file.name))


def _together(gathered: _Gathered) -> Observations:
    segments: list[Segment] = [describe_segment(file, gathered.disks) for file in gathered.segments]
    history = read_segments(segments, gathered.topic_names)
    settle_dates(gathered.readings, gathered.modified, history)
    _know_groups(gathered, history)
    of_logs = Observations.of(reading.found for reading in gathered.readings)
    history.add(of_logs, *gathered.configured)
    date_outputs(gathered.outputs, gathered.readings, gathered.modified, history)
    join_states(gathered.outputs)
    for dated in in_order(gathered.outputs):
        history.add(stamped(dated.output.found, dated.at))
    history.add(*gathered.dumps, read_snapshots(gathered.snapshots, gathered.unasked))
    history.settings += properties.common_settings(history.settings)
    history.unasked += gathered.unasked
    return history


def _know_groups(gathered: _Gathered, history: Observations) -> None:
    """Events that no line gives a group get it from the name of their file, if that names one."""
    known = dict(history.known_groups)
    for reading in gathered.readings:
        known |= reading.found.known_groups
    for dated in gathered.outputs:
        known |= dated.output.found.known_groups
    for reading in gathered.readings:
        if not reading.found.known_groups:
            reading.found.events = by_file_name(reading.found.events, reading.name, known)
            for event in reading.found.events:
                if event.group is not None:
                    reading.found.known_groups.setdefault(event.group, f"the name of {reading.name}")


__all__ = ["Budget", "Output", "read_evidence"]
