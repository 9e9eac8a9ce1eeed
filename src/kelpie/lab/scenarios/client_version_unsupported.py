"""A consumer is too old for its brokers.

Kafka 4.0 removed the old versions of requests. A consumer of Kafka 0.10 fetches in
version 2 at most, and the brokers begin with a later one: it says so in its log, and stops.
"""

from kelpie.lab.scenarios.group_setup import cluster_with, gather, new_member
from kelpie.lab.scenarios.java_log import JavaLog
from kelpie.lab.scenarios.stage import Stage
from kelpie.wire.api.api_versions import ApiVersionsRequest

NAME = "client-version-unsupported"
PERSONAS = ("4.3",)
_GROUP = "search"
_FETCH = 1
_OLD = (0, 2)


async def run(stage: Stage) -> None:
    cluster = await cluster_with(stage, {"orders": 2})
    member = new_member(stage, cluster, _GROUP, "app-1")
    stage.step("app-1 has a library of today, and reads.")
    await gather(cluster, member)
    await stage.calm(cluster, needs_logs=True)

    stage.step("app-2 has one of Kafka 0.10: Fetch up to version 2.")
    first = cluster.bootstrap_servers.partition(",")[0]
    async with await stage.connect(first, "app-2") as connection:
        answer = await connection.ask(ApiVersionsRequest(), 0)
    known = next(row for row in answer.api_keys if row.api_key == _FETCH)
    stage.expect(
        known.min_version > _OLD[1], f"the broker has versions {known.min_version} to {known.max_version}"
    )
    log = JavaLog(stage.logs, "app-2", _GROUP)
    log.could_not_speak("FETCH", _OLD, (known.min_version, known.max_version), stage.environment.now_ms())
    await stage.incident(cluster, finds={"KLP601": [_GROUP]}, needs_logs=True)
