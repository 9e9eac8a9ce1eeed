"""traffic in rounds: sums, so what came is added and what went is taken away. The table is its own state.

A round reads the rows of the hours that it adds to, and writes these hours anew.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - everyone who knows Spark knows F.

from kelpie.pipeline.rounds.following import Input, Round
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Snapshot
from kelpie.pipeline.tables import STORED
from kelpie.pipeline.transforms.positions import traffic

TIMELINE, TRAFFIC = "commit_timeline", "traffic"
_KEY = ["cluster", "group", "topic", "hour"]
_SUMS = ["records", "commits"]


class TrafficRounds:
    outputs = (TRAFFIC,)
    inputs = (TIMELINE,)
    state = ()

    def whole(self, tables: ClusterTables, inputs: Mapping[str, Snapshot], *, with_state: bool) -> Round:
        del with_state  # There is none beside the table.
        files = inputs[TIMELINE].files
        if not files:
            return Round({}, anew=self.outputs)
        rows = traffic(tables.frame_of(TIMELINE, files))
        return Round({TRAFFIC: tables.write(STORED[TRAFFIC], rows)}, anew=self.outputs)

    def step(self, tables: ClusterTables, inputs: Mapping[str, Input], position: Any) -> Round | None:
        del position
        changed = inputs[TIMELINE].changes
        if not changed:
            return Round({})
        table = STORED[TRAFFIC]
        sums = traffic(tables.frame_of(TIMELINE, changed.came))
        if changed.went:
            less = traffic(tables.frame_of(TIMELINE, changed.went))
            sums = sums.unionByName(less.select(*_KEY, *((-F.col(name)).alias(name) for name in _SUMS)))
        new = sums.toArrow().cast(table.schema)
        hours = sorted(new["hour"].unique().to_pylist())
        of_hours = pc.field("hour").isin(pa.array(hours, table.schema.field("hour").type))
        old = tables.lake.rows(table, tables.cluster, of_hours)
        both = pa.concat_tables([new, old.select(table.schema.names).cast(table.schema)])
        rows = both.group_by(_KEY).aggregate([(name, "sum") for name in _SUMS])
        rows = rows.rename_columns([*_KEY, *_SUMS]).filter(pc.field("commits") != 0)
        times = ", ".join(map(_literal, hours))
        return Round(
            {TRAFFIC: tables.write(table, rows.select(table.schema.names).cast(table.schema))},
            gone={TRAFFIC: [f"hour IN ({times})"]} if hours else {},
        )


def _literal(hour: datetime) -> str:
    return f"TIMESTAMP '{hour:%Y-%m-%dT%H:%M:%SZ}'"
