"""The brokers of a cluster: which of them live, and which reach the controller and each other."""

from collections.abc import Mapping

from kelpie.broker.broker import Broker


class BrokerSet:
    def __init__(self, brokers: Mapping[int, Broker]) -> None:
        self.by_id = brokers
        self.alive = set(brokers)
        self.isolated: set[int] = set()
        self.frozen: set[int] = set()
        """Brokers that learn of no newer image."""

    def __getitem__(self, node_id: int) -> Broker:
        return self.by_id[node_id]

    def living(self) -> list[Broker]:
        return [self.by_id[node_id] for node_id in sorted(self.alive)]

    def reaches_controller(self, node_id: int) -> bool:
        return node_id in self.alive and node_id not in self.isolated
