"""What brokers with KoP counted, and what their mapping tree said, as the doctor's rules want it.

Of each broker only the last scrapes count: rules compare the newest ones, and a month of scrapes is large.
Where files have no times that tell, as after a copy, the rows have none, and the names of files order them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.cluster.mappings import MappingHistory, mapping_history
from kelpie.evidence.dating import file_times_tell, name_order
from kelpie.evidence.kop_scrapes import broker_in, folder_of
from kelpie.model.time import Instant
from kelpie.observations import MalformedSeries, Observations, Scrape, TrafficSeries
from kelpie.observations.ordering import by_time
from kelpie.observations.traffic import BYTES, ENTRIES, MESSAGES
from kelpie.pipeline.sources.snapshots.outputs import observed
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant
from kelpie.pipeline.tables.table import DAY

MOST_SCRAPES = 20
"""Of one broker."""
_SCRAPE = ["broker", "at", "source"]
_MAPPINGS = ("mapping-listing", "mapping")
_COUNTERS = {MESSAGES: "messages", BYTES: "bytes", ENTRIES: "entries"}


class FileTimes(NamedTuple):
    modified: Mapping[str, Instant | None]
    """When files were last written, by name."""
    tell: bool
    """Whether that is when they were made: not so after a copy."""


def known_mappings(lake: Lake, cluster: str) -> MappingHistory:
    """What listings of the mapping tree said, by time."""
    table = lake.rows(TABLES["cluster_snapshot"], cluster, pc.field("kind").isin(list(_MAPPINGS)))
    rows = table.sort_by([("snapshot", "ascending"), ("ordinal", "ascending")]).to_pylist()
    seen = observed(rows)
    if seen.mapping_listings:
        settle_listings(seen, file_times(lake, cluster))
    return mapping_history(by_time(seen.mapping_listings), by_time(seen.mappings))


def file_times(lake: Lake, cluster: str) -> FileTimes:
    files = lake.rows(TABLES["evidence_file"], cluster).select(["source", "modified"]).to_pylist()
    modified = {row["source"]: instant(row["modified"]) for row in files}
    return FileTimes(modified, file_times_tell((), modified))


def settle_listings(seen: Observations, times: FileTimes) -> None:
    """Puts listings of the mapping tree into the order of their files' names, as `mapping_dumps` does, and
    takes away the times that they have of their files, if these do not tell.
    """
    untold = {
        row.source
        for row in seen.mapping_listings
        if not times.tell and row.at is not None and row.at == times.modified.get(_file(row.source))
    }
    listings = [row._replace(at=None) if row.source in untold else row for row in seen.mapping_listings]
    nodes = [row._replace(at=None) if row.listing in untold else row for row in seen.mappings]
    seen.mapping_listings = sorted(listings, key=lambda row: name_order(_file(row.source)))
    seen.mappings = sorted(nodes, key=lambda row: name_order(_file(row.listing)))


def _file(source: str) -> str:
    """The file that a line is of: "nodes.zk.txt:3" is of "nodes.zk.txt"."""
    name, colon, line = source.rpartition(":")
    return name if colon and line.isdecimal() else source


def scraped(lake: Lake, cluster: str, times: FileTimes, malformed: Sequence[MalformedSeries]) -> Observations:
    """The last scrapes of each broker, in order; and malformed series, with their brokers and times."""
    table = TABLES["traffic_sample"]
    seen = Observations()
    left: dict[str, int] = {}
    kept: list[dict[str, Any]] = []
    for day in sorted(lake.files_by(table, cluster, DAY), reverse=True):
        of_day = pc.field(DAY) == pa.scalar(day).cast(pa.date32())
        heads = lake.rows(table, cluster, of_day, _SCRAPE)
        scrapes = heads.group_by(_SCRAPE).aggregate([]).to_pylist()
        scrapes.sort(key=_order, reverse=True)
        chosen = []
        for scrape in scrapes:
            left.setdefault(scrape["broker"], MOST_SCRAPES)
            if left[scrape["broker"]] > 0:
                left[scrape["broker"]] -= 1
                chosen.append((scrape["broker"], scrape["at"], scrape["source"]))
        if not chosen:
            break
        wanted = set(chosen)
        earliest = min(at for _, at, _ in chosen)
        rows = lake.rows(table, cluster, of_day & (pc.field("at") >= pa.scalar(earliest))).to_pylist()
        kept += [row for row in rows if (row["broker"], row["at"], row["source"]) in wanted]
    kept.sort(key=lambda row: (*_order(row), row["line"] or 0))
    folders = {folder_of(row["source"]) for row in kept if _is_unnamed(row)}
    seen.malformed = [_settled(row, folders, times) for row in malformed]
    scrapes_seen: dict[tuple[str, str, Any], None] = {}
    for row in kept:
        broker = "" if _is_unnamed(row) and len(folders) == 1 else row["broker"]
        at = instant(row["at"]) if row["is_stamped"] or times.tell else None
        if (row["source"], broker, row["at"]) not in scrapes_seen:
            scrapes_seen[row["source"], broker, row["at"]] = None
            seen.scrapes.append(Scrape(broker, at, row["source"]))
        seen.traffic += _series(row, broker, at)
    return seen


def _settled(row: MalformedSeries, folders: set[str], times: FileTimes) -> MalformedSeries:
    """As `kop_scrapes.settle_scrapes` does it."""
    folder = folder_of(row.scrape) if len(folders) > 1 else ""
    at = times.modified.get(row.scrape) if times.tell else None
    return row._replace(broker=row.broker or folder, at=row.at if row.at is not None else at)


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["at"], name_order(row["source"])


def _is_unnamed(row: Mapping[str, Any]) -> bool:
    """Whether only its folder names the broker."""
    return bool(row["broker"] == folder_of(row["source"])) and not broker_in(row["source"])


def _series(row: Mapping[str, Any], broker: str, at: Instant | None) -> Sequence[TrafficSeries]:
    if row["topic"] is None:
        return ()
    scrape, topic, partition, group = (row[name] for name in ("source", "topic", "partition", "group"))
    place = f"{scrape}:{row['line']}"
    return [
        TrafficSeries(scrape, topic, partition, group, counter, row[column], broker, at, place)
        for counter, column in _COUNTERS.items()
    ]
