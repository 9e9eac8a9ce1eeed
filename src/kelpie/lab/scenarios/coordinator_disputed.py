"""A broker has missed an election, and sends consumers to the wrong coordinator.

Which broker coordinates a group is not voted on: each broker answers out of
its own picture of the cluster. One that has lost touch with the controller
goes on naming the old coordinator, and that one answers error 16
(NOT_COORDINATOR). A consumer that asks the stale broker is sent round in
circles; one that asks another broker is well.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.coordinated_groups import lookup, two_groups
from kelpie.lab.scenarios.stage import Stage
from kelpie.questions.heartbeat import AskHeartbeat

NAME = "coordinator-disputed"
PERSONAS = ("4.3", "3.9", "2.8", "0.9")


async def run(stage: Stage) -> None:
    groups = await two_groups(stage, 1, 2)
    cluster, disputed = groups.cluster, groups.first

    stage.step("Broker 3 hears nothing from the controller any more. Broker 1 is stopped, and comes back.")
    frozen = cluster.freeze_metadata(3)
    await cluster.stop(1)
    moved = await stage.until(
        lambda: lookup(stage, cluster, 2, disputed), lambda answer: answer.node_id in (2, 3)
    )
    stage.expect(
        moved.node_id in (2, 3), f"{disputed}: broker 2 says that broker {moved.node_id} coordinates it"
    )
    await cluster.start(1)
    stale = await lookup(stage, cluster, 3, disputed)
    stage.expect(stale.node_id == 1, f"{disputed}: broker 3 says that broker {stale.node_id} does")
    heartbeat = AskHeartbeat(disputed, 1, "any-member", None)
    async with await stage.connect(f"{stale.host}:{stale.port}") as connection:
        error = await stage.until(
            lambda: connection.put(heartbeat), lambda error: error == ErrorCode.NOT_COORDINATOR
        )
    stage.expect(error == ErrorCode.NOT_COORDINATOR, f"broker 1 answers {error}")
    await stage.incident(cluster, finds={"KLP103": [disputed]})

    stage.step("Broker 3 hears from the controller again.")
    frozen.lift()
    agreed = await stage.until(
        lambda: lookup(stage, cluster, 3, disputed), lambda answer: answer.node_id == moved.node_id
    )
    stage.expect(
        agreed.node_id == moved.node_id, f"{disputed}: broker 3 names broker {agreed.node_id} as well"
    )
