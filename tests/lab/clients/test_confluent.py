"""confluent-kafka against the lab and against Kafka 4.3.1."""

from tests.lab.clients.drivers.confluent import CLIENT
from tests.lab.clients.scenarios.administration import GroupAdministration, TopicAdministration
from tests.lab.clients.scenarios.consuming import Consuming
from tests.lab.clients.scenarios.groups import CooperativeMembership, Groups, StaticMembership
from tests.lab.clients.scenarios.producing import Producing
from tests.lab.clients.scenarios.transactions import Transactions


class TestConfluent(
    Producing,
    Consuming,
    Groups,
    StaticMembership,
    CooperativeMembership,
    Transactions,
    TopicAdministration,
    GroupAdministration,
):
    client = CLIENT
