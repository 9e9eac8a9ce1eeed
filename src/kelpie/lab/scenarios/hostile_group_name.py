"""With KoP: a quote in the name of a group, and Prometheus drops all metrics of a broker.

KoP writes the names of groups into labels as they are. A line with a quote too
many is in no format, and Prometheus refuses the whole scrape for it.
"""

from kelpie.lab.scenarios.group_setup import SINCE_2_8, gather, new_member
from kelpie.lab.scenarios.kop import A, Recording, counting_cluster
from kelpie.lab.scenarios.stage import Stage

NAME = "hostile-group-name"
PERSONAS = SINCE_2_8
_PLAIN, _HOSTILE = "billing", 'the "new" billing'


async def run(stage: Stage) -> None:
    cluster = await counting_cluster(stage)
    kop = Recording(stage, cluster, verbatim=True)
    plain = new_member(stage, cluster, _PLAIN, "app-1")
    stage.step(f"A consumer of {_PLAIN} reads.")
    await gather(cluster, plain)
    await kop.record()
    await stage.calm(cluster, needs_logs=True)

    stage.step(f"A consumer of {_HOSTILE} reads.")
    hostile = new_member(stage, cluster, _HOSTILE, "app-2")
    await gather(cluster, hostile)
    await kop.record()
    stage.say(f'The scrape of broker {A} has lines with group="{_HOSTILE}" in them.')
    await stage.incident(cluster, finds={"KLP406": [_HOSTILE]}, needs_logs=True)
