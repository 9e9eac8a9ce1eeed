"""How old a row is: which column says when what it tells of ended. Retention goes by that (`retention`).

A row whose column is empty has not ended, or has no time, and is never old: a member that is still there, a
regression that was not regained, a record of Kafka before 0.10.
"""

from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from kelpie.pipeline.tables.table import DAY, LakeTable

_ENDS: dict[str, tuple[str, ...]] = {
    "offset_commit": ("written", "committed"),
    "transaction_marker": ("written",),
    "group_metadata": ("written",),
    "log_event": ("at",),
    "metric_sample": ("at",),
    "traffic_sample": (DAY,),
    "cluster_snapshot": ("at",),
    "offset_sample": (DAY,),
    "group_generation": ("ended",),
    "rebalance": ("ended",),
    "membership_interval": ("ended",),
    "ownership_interval": ("ended",),
    "rebalance_attempt": ("ended",),
    "commit_timeline": ("committed",),
    "lag": ("at",),
    "coordinator_timeline": ("ended",),
    "traffic_closing": (DAY,),
    "traffic_opening": (DAY,),
    "offset_closing": (DAY,),
    "unattributed_traffic": (DAY,),
    "coordinator_outage": ("ended",),
    "offset_regression": ("regained",),
    "offset_loss": ("resumed",),
    "traffic": ("hour",),
    "attributed_traffic": (DAY,),
    "attribution_gap": (DAY,),
    "findings": ("until",),
}
"""Of several columns, the first that is not empty."""
AGELESS = {
    "evidence_file": "says which files were taken in: without it they would be taken in again",
    "quarantine": "its rows have no time, and are few",
    "group_health": "one row for each group, of now",
    "open_question": "of now",
}
"""Tables of which no row goes, and why."""


def ends(table: LakeTable) -> tuple[str, ...]:
    """The columns that say when a row ended; none: its rows have no age."""
    return _ENDS.get(table.name, ())


def is_young(table: LakeTable, before: date) -> pc.Expression:
    """Whether a row is kept, if those that ended before a day go."""
    expression = pc.scalar(True)
    for name in reversed(ends(table)):
        limit = limit_of(table, name, before)
        expression = pc.if_else(pc.field(name).is_null(), expression, pc.field(name) >= limit)
    return expression


def young_in_sql(table: LakeTable, before: date) -> str:
    """The same as a condition in SQL, for tables with one such column, which is a time."""
    (name,) = ends(table)
    # deltalake gives the text the type of the column. A literal of type TIMESTAMP has no zone there.
    return f'("{name}" IS NULL OR "{name}" >= \'{midnight(before):%Y-%m-%dT%H:%M:%S.%fZ}\')'


def limit_of(table: LakeTable, column: str, before: date) -> pa.Scalar:
    kind = table.schema.field(column).type
    return pa.scalar(before if pa.types.is_date(kind) else midnight(before), kind)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
