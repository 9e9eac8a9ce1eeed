"""What is measured of segments, as a process of its own: what a run does with them, from its start on.

It imports nothing that a run does not.
"""

import json
import sys
from pathlib import Path

from kelpie.evidence.archives import Budget
from kelpie.evidence.files import Search
from kelpie.evidence.recognition import Kind
from kelpie.pipeline.sources.inventory import plan, take_inventory
from kelpie.pipeline.sources.segments.intake import described, of_offsets_topic, on_spark, take_in
from kelpie.pipeline.spark.session import open_context
from kelpie.pipeline.storage.lake import Lake


def main(folder: Path, tables: Path) -> None:
    context = open_context(brief=True, keep_classes=True)
    lake, cluster = Lake(tables), "fleet"
    (batch,) = plan(lake, cluster, take_inventory([folder], Search(tables, Budget()), tables))
    files = of_offsets_topic(described(batch.of(Kind.SEGMENT), {}), cluster)
    runner, cores = on_spark(context), context.defaultParallelism
    done = take_in(lake, files, runner, cores=cores, application=batch.application, version=batch.number)
    print(json.dumps(done.rows))
    context.stop()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
