"""`read_evidence(paths)` reads folders, files and archives, and returns all observations in them.

The content of a file says what it is, hardly ever its name. A file that cannot be read, or that Kelpie does
not know, becomes an `Unasked` row with the reason; all other files are read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kelpie.evidence.archives import Budget
from kelpie.evidence.assembly import BrokerProperties, add_outputs
from kelpie.evidence.dating import Dated, file_times_tell, settle_dates
from kelpie.evidence.describes import read_output
from kelpie.evidence.files import EvidenceFile, Search
from kelpie.evidence.kop_scrapes import read_kop_scrape, settle_scrapes
from kelpie.evidence.logs import LogReading, read_log
from kelpie.evidence.logs.attribution import by_file_name, names_its_group
from kelpie.evidence.logs.hints import MISFIT, NO_HINTS, Hints
from kelpie.evidence.logs.lines import read_lines
from kelpie.evidence.mapping_dumps import read_mappings, settle_mappings
from kelpie.evidence.properties import common_settings
from kelpie.evidence.recognition import Kind, recognise
from kelpie.evidence.segments import describe_segment, read_segments
from kelpie.evidence.snapshot_files import Torn, header_of
from kelpie.evidence.snapshots import Snapshot, read_snapshots
from kelpie.evidence.unpacking_room import unpacking_room
from kelpie.evidence.unreadable import unreadable
from kelpie.evidence.zookeeper_dumps import NoDump, observe, read_dump
from kelpie.model.time import Instant
from kelpie.observations import Observations, Unasked

MOST_ROWS = 10_000_000
"""All rows are held in memory until they have been judged: so many take about 3 GB."""
MOST_LINES = 1_000_000
"""Of a text that gives a row or more for each line. Logs are read whole; their events are limited."""
FULL = (
    f"It is left out: the evidence before it has {MOST_ROWS:,} rows already. Name fewer files, or use kelpie "
    "pipeline run."
)
NOTHING_KNOWN = "It is a text, and there is nothing in it that Kelpie knows."


@dataclass(slots=True)
class _Gathered:
    """What was read of all files."""

    segments: list[EvidenceFile] = field(default_factory=list)
    readings: list[LogReading] = field(default_factory=list)
    outputs: list[Dated] = field(default_factory=list)
    properties: BrokerProperties = field(default_factory=BrokerProperties)
    modified: dict[str, Instant | None] = field(default_factory=dict)
    topic_names: dict[bytes, str] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    dumps: list[Observations] = field(default_factory=list)
    scrapes: dict[str, Observations] = field(default_factory=dict)
    mappings: dict[str, Observations] = field(default_factory=dict)
    unasked: list[Unasked] = field(default_factory=list)
    rows: int = 0

    def take(self, rows: Observations) -> Observations:
        self.rows += rows.row_count()
        return rows

    def lines(self, file: EvidenceFile, encoding: str) -> Iterator[str]:
        """The lines of a text, up to `MOST_LINES`."""
        for number, line in enumerate(read_lines(file.path, encoding)):
            if number == MOST_LINES:
                reason = f"Only its first {MOST_LINES:,} lines were read."
                self.unasked.append(Unasked("file", file.name, reason, source=file.name))
                return
            yield line


def read_evidence(
    paths: Iterable[str | Path], *, hints: Hints = NO_HINTS, unpacked: Budget | None = None
) -> Observations:
    """All rows of all files below the paths, and a reason for each file that could not be read.

    Without a time zone among the hints, the log's own zone counts where it is known, else UTC. The budget
    limits how much is unpacked from archives.
    """
    with unpacking_room() as room:
        search = Search(room, unpacked or Budget())
        gathered = _Gathered()
        for file in search.files(Path(path) for path in paths):
            _take(file, gathered, hints)
        observations = _together(gathered)
        observations.unasked[:0] = search.unasked
        return observations


def _take(file: EvidenceFile, gathered: _Gathered, hints: Hints) -> None:
    """Recognises a file and reads it. If that fails, the other files are still read."""
    gathered.modified[file.name] = file.modified
    try:
        reason = _read(file, gathered, hints) if gathered.rows < MOST_ROWS else FULL
    except (Torn, NoDump) as error:
        reason = str(error)
    except OSError as error:
        reason = unreadable(error)
    except MemoryError:
        reason = "It needs more memory than there is."
    except Exception as error:  # The file may hold anything; the others must still be read.
        reason = f"It made Kelpie stumble ({type(error).__name__}: {error}), which is a defect of Kelpie's."
    if reason is not None:
        gathered.unasked.append(Unasked("file", file.name, reason, source=file.name))


def _read(file: EvidenceFile, gathered: _Gathered, hints: Hints) -> str | None:
    """None, or why the file is of no use."""
    what = recognise(file)
    if Kind.SEGMENT in what.kinds:
        gathered.segments.append(replace(file, head=b""))
    if Kind.CONFIGURATION in what.kinds:
        gathered.properties.add(file, what.beginning)
    if Kind.SCRAPE in what.kinds:
        scrape = read_kop_scrape(gathered.lines(file, what.encoding), file.name)
        if scrape is None:
            return "It is a scrape of metrics, which the doctor does not look at; kelpie pipeline run does."
        gathered.scrapes[file.name] = gathered.take(scrape)
    if Kind.MAPPINGS in what.kinds:
        mappings = read_mappings(gathered.lines(file, what.encoding), file.name)
        gathered.mappings[file.name] = gathered.take(mappings)
    if Kind.SURVEY in what.kinds:
        gathered.snapshots[file.name] = Snapshot(file.path, header_of(file.head))
    if Kind.ZOOKEEPER in what.kinds:
        gathered.dumps.append(gathered.take(observe(read_dump(file.path), file.name, file.modified)))
    if Kind.OUTPUT in what.kinds:
        output = read_output(gathered.lines(file, what.encoding), file.name)
        gathered.take(output.observations)
        gathered.outputs.append(Dated(output, file.modified))
        gathered.topic_names |= output.topic_ids
    if Kind.LOG in what.kinds:
        reading = read_log(read_lines(file.path, what.encoding), file.name, hints)
        if hints.layout_of(file.name) is not None and not reading.heads:
            return MISFIT
        if reading.heads or reading.observations.events:
            gathered.take(reading.observations)
            gathered.readings.append(reading)
        elif Kind.OUTPUT not in what.kinds:
            return NOTHING_KNOWN
    return what.reason or None


def _together(gathered: _Gathered) -> Observations:
    segments = [describe_segment(file, gathered.properties.disks) for file in gathered.segments]
    history = read_segments(segments, gathered.topic_names, most=max(MOST_ROWS - gathered.rows, 0))
    settle_dates(gathered.readings, gathered.modified, history)
    _know_groups(gathered, history)
    of_logs = Observations().add(*(reading.observations for reading in gathered.readings))
    history.add(of_logs, gathered.properties.settings)
    add_outputs(history, gathered.outputs, gathered.readings, gathered.modified, history)
    history.add(*_attribution(gathered))
    history.add(*gathered.dumps)
    left = max(MOST_ROWS - history.row_count(), 0)
    history.add(read_snapshots(gathered.snapshots, gathered.unasked, most=left))
    history.settings += common_settings(history.settings)
    history.unasked += gathered.unasked
    return history


def _attribution(gathered: _Gathered) -> tuple[Observations, Observations]:
    """Scrapes and mappings, with the times of their files, where these tell."""
    trusted = file_times_tell(gathered.readings, gathered.modified)
    times = gathered.modified if trusted else {}
    return (
        settle_scrapes([(rows, times.get(name)) for name, rows in gathered.scrapes.items()]),
        settle_mappings((rows, times.get(name)) for name, rows in gathered.mappings.items()),
    )


def _know_groups(gathered: _Gathered, history: Observations) -> None:
    """Events without a group get the group in the name of their file, if it has one."""
    known = dict(history.known_groups)
    for reading in gathered.readings:
        known |= reading.observations.known_groups
    for dated in gathered.outputs:
        known |= dated.output.observations.known_groups
    for reading in gathered.readings:
        if not reading.observations.known_groups:
            reading.observations.events = by_file_name(reading.observations.events, reading.name, known)
            for event in reading.observations.events:
                if event.group is not None and not names_its_group(event):
                    reading.observations.known_groups.setdefault(event.group, f"the name of {reading.name}")
