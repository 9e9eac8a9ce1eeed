"""The bracket before a message of Kafka's: who writes, and about what."""

import re
from functools import lru_cache

from kelpie.evidence.logs.matching import partition_in

_CLIENT = re.compile(
    r"(?:Consumer|Producer|AdminClient|ShareConsumer) (?:instanceId=(?P<instance_id>.*?), )?"
    r"clientId=(?P<client_id>.*?)(?:, groupId=(?P<group>.*?))?(?:, transactionalId=.*)?$"
)
_BROKER = re.compile(
    r"(?:Kafka ?Server|BrokerServer|BrokerLifecycleManager|Broker|KafkaApi|GroupCoordinator"
    r"|GroupMetadataManager|Group Metadata Manager on Broker)[ -]?(?:id=|brokerId=|nodeId=)?(?P<node>\d{1,9})"
    r"(?: topic=(?P<topic>\S+) partition=(?P<partition>\d{1,9}))?$"
)
_PARTITION = re.compile(r"Partition (?P<tp>\S+) (?:broker=|on broker )(?P<node>\d{1,9})")


@lru_cache(maxsize=4096)
def facts_of(who: str) -> dict[str, str | int]:
    """Fields of an event that are in the bracket. Do not change what comes back."""
    facts: dict[str, str | int] = {}
    if match := _CLIENT.match(who):
        for name in ("instance_id", "client_id", "group"):
            if match[name] and match[name] != "null":
                facts[name] = match[name]
    elif match := _BROKER.match(who):
        facts["node"] = int(match["node"])
        if match["topic"]:
            facts |= {"topic": match["topic"], "partition": int(match["partition"])}
    elif match := _PARTITION.match(who):
        facts |= {**partition_in(match["tp"]), "node": int(match["node"])}
    return facts
