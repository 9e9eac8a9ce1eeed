"""What brokers do from time to time: look after the ISR, retention, compaction."""

from typing import TYPE_CHECKING

from kelpie.model.time import Instant

if TYPE_CHECKING:
    from kelpie.broker.fabric import Fabric

ISR_REVIEWS = 2
"""So many reviews of the ISR in the time that a follower may lag."""


class Upkeep:
    def __init__(self, fabric: "Fabric", now: Instant) -> None:
        self._fabric = fabric
        self._review_isr(now)
        self._clean(now)

    def _settings(self, name: str) -> int:
        brokers = self._fabric.alive_brokers()
        return brokers[0].settings.number(name) if brokers else 1000

    def _review_isr(self, now: Instant) -> None:
        self._fabric.replication.review(now)
        pause = max(self._settings("replica.lag.time.max.ms") // ISR_REVIEWS, 100)
        self._fabric.timers.set("review isr", now + pause, self._review_isr)

    def _clean(self, now: Instant) -> None:
        for broker in self._fabric.alive_brokers():
            for partition, replica in broker.replicas.items():
                config = broker.log_config(partition)
                if config.deletes:
                    replica.log.retain(config, now, replica.high_watermark)
                if config.compacts:
                    replica.log.compact(config, now, replica.high_watermark)
                replica.log.expire_producers(now, broker.settings.number("producer.id.expiration.ms"))
        pause = max(self._settings("log.retention.check.interval.ms"), 100)
        self._fabric.timers.set("clean logs", now + pause, self._clean)
