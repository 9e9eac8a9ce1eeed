"""A group is too slow, and retention comes nearer.

Producers write faster than a group reads, and the topic keeps records for a few
seconds only (elsewhere it is days). The group falls behind, and will meet the
beginning of the log: then records are deleted that it has not read.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.group_pair import AFFECTED, PARTITION, GroupPair
from kelpie.lab.scenarios.stage import Stage

NAME = "retention-margin"
PERSONAS = ("4.3", "3.9", "2.8")

_KEPT_MS = 6_000
_SECONDS_PER_RECORD = 0.1
_FAR_BEHIND = 140
"""Records."""


async def run(stage: Stage) -> None:
    groups = await GroupPair.start(
        stage,
        settings={"log.retention.check.interval.ms": 100},
        topic={"retention.ms": _KEPT_MS, "segment.ms": 300},
        records=10,
    )
    cluster = groups.cluster

    async def lag() -> int:
        ends = await administering.log_ends(stage, cluster, PARTITION)
        return ends.latest - groups.affected.position(PARTITION)

    stage.step(f"{AFFECTED} becomes slow: it reads one record where ten are written. They are kept for 6 s.")
    groups.affected.seconds_per_record = _SECONDS_PER_RECORD
    await stage.until(lag, lambda behind: behind >= _FAR_BEHIND)
    begins = (await administering.log_ends(stage, cluster, PARTITION)).earliest
    at = await administering.committed(stage, cluster, AFFECTED, PARTITION)
    stage.expect(
        begins <= at, f"the log begins at {begins}, and {AFFECTED} stands at {at}: nothing is lost yet"
    )
    await stage.incident(cluster, finds={"KLP313": [AFFECTED]}, seconds_of_history=2.2)

    stage.step("Somebody makes it fast again, in time.")
    end = (await administering.log_ends(stage, cluster, PARTITION)).latest
    groups.affected.seconds_per_record = 0.0
    position = await groups.affected.until_at(PARTITION, end)
    stage.expect(position >= end, f"{AFFECTED} has come to {position}, and has lost nothing")
