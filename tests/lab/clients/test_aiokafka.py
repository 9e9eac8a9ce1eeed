"""aiokafka against the lab and against Kafka 4.3.1."""

from tests.lab.clients.drivers.aiokafka import CLIENT
from tests.lab.clients.scenarios.administration import TopicAdministration
from tests.lab.clients.scenarios.consuming import Consuming
from tests.lab.clients.scenarios.groups import Groups, StaticMembership
from tests.lab.clients.scenarios.producing import Producing
from tests.lab.clients.scenarios.transactions import Transactions


class TestAioKafka(
    Producing,
    Consuming,
    Groups,
    StaticMembership,
    Transactions,
    TopicAdministration,
):
    client = CLIENT
