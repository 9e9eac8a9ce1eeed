"""An application adds so much text to its offsets that the broker refuses them.

A commit may carry a text, up to offset.metadata.max.bytes (4,096 by default). A
library keeps there which records are done; one day the text is longer than that,
and every commit is refused.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.group_setup import SINCE_2_8, cluster_with, gather, new_member
from kelpie.lab.scenarios.stage import Stage

NAME = "offset-metadata-too-large"
PERSONAS = SINCE_2_8
_GROUP = "search"
_TOO_LONG = 5_000


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 1})
    member = new_member(stage, cluster, _GROUP, "app-1")
    stage.step("app-1 reads, and commits without any text.")
    await gather(cluster, member)
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"It adds {_TOO_LONG:,} characters to its offset.")
    code = await member.commit(metadata="x" * _TOO_LONG)
    stage.expect(code is ErrorCode.OFFSET_METADATA_TOO_LARGE, f"the commit is refused: {code.name}")
    await stage.incident(cluster, finds={"KLP320": [_GROUP]}, needs_logs=True)
