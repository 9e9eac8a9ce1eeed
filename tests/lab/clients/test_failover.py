"""Every client through the same crash: the broker that leads its partition and coordinates its group."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from tests import programs
from tests.lab.clients.clusters import Kafka
from tests.lab.clients.drivers import aiokafka, confluent, kafka_python
from tests.lab.clients.scenarios.failover import GroupStory, KcatStory, Story, group_of
from tests.lab.clients.scenarios.scenario import name

CLIENTS = (confluent.CLIENT, kafka_python.CLIENT, aiokafka.CLIENT)


def test_leader_and_coordinator_crash_while_groups_consume(kafka: Kafka) -> None:
    """One broker leads a partition of each and coordinates every group. It dies, work goes on; it returns."""
    victim = kafka.coordinator_of(name("group"))
    stories: list[Story] = [GroupStory(client, kafka, victim, group_of(kafka, victim)) for client in CLIENTS]
    kcat = programs.find("kcat")  # Where it is not installed, its own tests say so.
    if kcat is not None:
        stories.append(KcatStory(kcat, kafka, victim))
    with ExitStack() as all_open:
        for story in stories:
            all_open.enter_context(story.open)
        play(stories, "before")
        kafka.kill(victim)
        play(stories, "during")
        kafka.start(victim)
        play(stories, "after")


def play(stories: Sequence[Story], act: str) -> None:
    """All at once."""

    def one(story: Story) -> None:
        try:
            getattr(story, act)()
        except BaseException as error:
            error.add_note(f"{story.title}, {act} the crash")
            raise

    with ThreadPoolExecutor(len(stories)) as pool:
        list(pool.map(one, stories))
