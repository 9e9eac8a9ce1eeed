"""confluent-kafka against the lab and against Kafka 4.3.1."""

from tests.clients.drivers.confluent import CLIENT
from tests.clients.scenarios.administration import GroupAdministration, TopicAdministration
from tests.clients.scenarios.consuming import Consuming
from tests.clients.scenarios.groups import CooperativeMembership, Groups, StaticMembership
from tests.clients.scenarios.producing import Producing
from tests.clients.scenarios.transactions import Transactions


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
