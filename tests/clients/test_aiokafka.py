"""aiokafka against the lab and against Kafka 4.3.1."""

from tests.clients.drivers.aiokafka import CLIENT
from tests.clients.scenarios.administration import TopicAdministration
from tests.clients.scenarios.consuming import Consuming
from tests.clients.scenarios.groups import Groups, StaticMembership
from tests.clients.scenarios.producing import Producing
from tests.clients.scenarios.transactions import Transactions


class TestAioKafka(
    Producing,
    Consuming,
    Groups,
    StaticMembership,
    Transactions,
    TopicAdministration,
):
    client = CLIENT
