"""A group is too slow, and retention comes nearer.

Producers write faster than a group reads, and the topic keeps records for a few
seconds only (elsewhere it is days). The group falls behind, and will meet the
beginning of the log: then records are deleted that it has not read.
"""

import asyncio

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.stage import Stage
from kelpie.lab.scenarios.two_groups import ILL, PARTITION, TwoGroups

NAME = "retention-margin"
PERSONAS = ("4.3", "3.9", "2.8")

_KEPT_MS = 6_000


async def run(stage: Stage) -> None:
    groups = await TwoGroups.start(
        stage,
        settings={"log.retention.check.interval.ms": 100},
        topic={"retention.ms": _KEPT_MS, "segment.ms": 300},
        records=10,
    )
    cluster = groups.cluster
    stage.step(f"{ILL} becomes slow: it reads one record where ten are written. They are kept for 6 s.")
    groups.ill.most = 1
    await asyncio.sleep(1.6)
    begins = await administering.end_of(stage, cluster, PARTITION, administering.EARLIEST)
    at = await administering.committed(stage, cluster, ILL, PARTITION)
    stage.expect(begins <= at, f"the log begins at {begins}, and {ILL} stands at {at}: nothing is lost yet")
    await stage.incident(cluster, finds={"KLP313": [ILL]}, seconds_of_history=2.2)

    stage.step("Somebody makes it fast again, in time.")
    end = await administering.end_of(stage, cluster, PARTITION)
    groups.ill.most = 1_000
    came = await groups.ill.until_at(PARTITION, end)
    stage.expect(came >= end, f"{ILL} has come to {came}, and has lost nothing")
