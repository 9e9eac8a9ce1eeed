"""A consumer meets a record that it cannot read.

Somebody has written a record that is no order. The consumer's deserializer fails,
its poll loop logs the error and polls again, and so on for ever: it stays at that
offset, though the record before was read and heartbeats go on.
"""

from kelpie.lab.scenarios import administering
from kelpie.lab.scenarios.group_pair import AFFECTED, PARTITION, GroupPair
from kelpie.lab.scenarios.stage import Stage

NAME = "poison-record"
PERSONAS = ("4.3", "3.9", "2.8")


async def run(stage: Stage) -> None:
    groups = await GroupPair.start(stage)
    cluster = groups.cluster
    stage.step(f"The consumer of {AFFECTED} comes to a record that its deserializer cannot read.")
    offset = groups.affected.fail_at(PARTITION)
    before = await stage.until(
        lambda: administering.committed(stage, cluster, AFFECTED, PARTITION), lambda at: at == offset
    )
    stage.expect(before == offset, f"{AFFECTED} has committed {before}, and fails at {offset}")
    await stage.incident(
        cluster,
        finds={"KLP309": [AFFECTED], "KLP317": [AFFECTED]},
        after_s=0.5,
        seconds_of_history=16.0,
        needs_logs=True,
    )
    after = await administering.committed(stage, cluster, AFFECTED, PARTITION)
    stage.expect(after == offset, f"it still stands at {after}")

    stage.step("The application is corrected, and reads on.")
    groups.affected.unpause()
    end = (await administering.log_ends(stage, cluster, PARTITION)).latest
    position = await groups.affected.until_at(PARTITION, end)
    stage.expect(position >= end, f"{AFFECTED} has come to {position}")
