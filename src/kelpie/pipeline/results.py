"""What commands read from tables, without Spark: findings of the doctor, the last committed offsets."""

from collections.abc import Collection
from typing import Any

from kelpie.doctor.causes import linked
from kelpie.doctor.diagnosis import Diagnosis, Waiting
from kelpie.doctor.open_questions import OpenQuestions
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.selection import Selection
from kelpie.observations import OFFSETS_TOPIC, Commit, Observations
from kelpie.observations.positions import NO_OFFSET
from kelpie.pipeline.diagnosis.cluster import KnownCluster, clusters_of
from kelpie.pipeline.diagnosis.findings import finding_of, open_of
from kelpie.pipeline.sources.snapshots.chosen import rows_of_groups
from kelpie.pipeline.sources.snapshots.outputs import observed
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import TABLES
from kelpie.pipeline.tables.moments import instant
from kelpie.places import Place


class NoTables(KelpieError):
    """The folder has no tables, or tables of several clusters."""


def are_tables(folder: Place) -> bool:
    return (folder / "bronze" / "evidence_file" / "_delta_log").is_dir()


def read_diagnosis(
    folder: Place, cluster: str | None = None, groups: Collection[str] | Selection | None = None
) -> Diagnosis:
    """The findings for these groups, or for all, from when the tables were made. Raises NoTables."""
    lake = Lake(folder, read_only=True)
    name = chosen_cluster(lake, cluster)
    health = _rows(lake, "group_health", name)
    if isinstance(groups, Selection):
        groups = groups.chosen({row["group"]: None for row in health})
    wanted_rows = [row for row in health if groups is None or row["group"] in groups]
    unknown = set(groups or ()) - {row["group"] for row in health}
    picture = KnownCluster(lake, name)
    view = picture.view(instant(max((row["at"] for row in health), default=None)))
    wanted = {row["group"] for row in wanted_rows} | {None}
    findings = [finding_of(row) for row in _rows(lake, "findings", name) if row["group"] in wanted]
    findings.sort(key=lambda finding: (-finding.severity, finding.code, finding.cause, finding.group or ""))
    questions = OpenQuestions.of(
        open_of(row) for row in _rows(lake, "open_question", name) if row["group"] in wanted
    )
    of_groups = observed(rows_of_groups(picture.read, picture.choice, ["unasked"])).unasked
    return Diagnosis(
        view,
        tuple(sorted({row["group"] for row in wanted_rows} | unknown)),
        linked(findings),
        questions.by_lack(),
        tuple(
            sorted(
                (row["group"], tuple(row["known_from"]))
                for row in wanted_rows
                if row["is_listed"] is False and row["known_from"]
            )
        ),
        tuple(
            sorted(
                unknown
                | {row["group"] for row in wanted_rows if row["is_listed"] is False and not row["known_from"]}
            )
        ),
        (*view.unasked, *(row for row in of_groups if row.name in wanted)),
        waiting={row["group"]: _waiting(row) for row in wanted_rows if row["lag"]},
    )


def _waiting(row: dict[str, Any]) -> Waiting:
    """The records that wait for a group, by its row of group_health."""
    now, age_ms = instant(row["at"]), row["lag_ms"]
    return Waiting(row["lag"], now - age_ms if now is not None and age_ms is not None else None)


def read_positions(folder: Place, cluster: str | None = None) -> Observations:
    """Commits that counted, committed offsets that tools showed, and the ends of logs on disks."""
    lake = Lake(folder, read_only=True)
    name = chosen_cluster(lake, cluster)
    known = KnownCluster(lake, name)
    described = observed(rows_of_groups(known.read, known.choice, ["committed"]))
    of_cluster = known.observations
    commits = _rows(lake, "commit_timeline", name)
    commits.sort(key=lambda row: (row["offsets_partition"], row["log_offset"]))
    return Observations(
        commits=[_commit(row) for row in commits],
        committed=described.committed,
        ends=of_cluster.ends,
        partitions=of_cluster.partitions,
    )


def _commit(row: dict[str, Any]) -> Commit:
    place = f"commit_timeline/{OFFSETS_TOPIC}-{row['offsets_partition']}/@{row['log_offset']}"
    offset = NO_OFFSET if row["offset"] is None else row["offset"]
    at = instant(row["committed"])
    return Commit(row["group"], row["topic"], row["partition"], offset, at, source=place)


def known_clusters(lake: Lake) -> list[str]:
    """Names of the clusters that the tables tell of, at least one. Raises NoTables."""
    try:
        has_tables = are_tables(lake.root)
    except OSError as error:
        raise NoTables(f"Tables cannot be read: {error.strerror or error}.") from None
    make = f"kelpie pipeline run --into {lake.root}"
    if not has_tables:
        raise NoTables(f"There are no tables in {lake.root}; {make} makes them.")
    known = clusters_of(lake)
    if not known:
        raise NoTables(f"The tables in {lake.root} tell of no cluster yet; {make} fills them.")
    return known


def chosen_cluster(lake: Lake, cluster: str | None) -> str:
    """The cluster of this name, or the only one. Raises NoTables."""
    known = known_clusters(lake)
    if cluster is not None:
        if cluster not in known:
            raise NoTables(f"The tables know no cluster {cluster}; they know {', '.join(known)}.")
        return cluster
    if len(known) > 1:
        raise NoTables(f"The tables are of several clusters; choose one with --cluster: {', '.join(known)}.")
    return known[0]


def _rows(lake: Lake, name: str, cluster: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.rows(TABLES[name], cluster).to_pylist()
    return rows
