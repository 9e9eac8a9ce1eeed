"""What brokers do at intervals: they review the ISR, delete and compact old segments."""

from kelpie.broker.broker import BrokerSet
from kelpie.broker.replication import Replication
from kelpie.broker.timers import Timers
from kelpie.model.time import Instant

ISR_REVIEWS = 2
"""How many reviews of the ISR there are in the time that a follower may lag."""


class Upkeep:
    def __init__(self, brokers: BrokerSet, replication: Replication, timers: Timers, now: Instant) -> None:
        self._brokers = brokers
        self._replication = replication
        self._timers = timers
        self._review_isr(now)
        self._clean(now)

    def _settings(self, name: str) -> int:
        brokers = self._brokers.living()
        return brokers[0].settings.number(name) if brokers else 1000

    def _review_isr(self, now: Instant) -> None:
        self._replication.review(now)
        pause = max(self._settings("replica.lag.time.max.ms") // ISR_REVIEWS, 100)
        self._timers.set("review isr", now + pause, self._review_isr)

    def _clean(self, now: Instant) -> None:
        for broker in self._brokers.living():
            for partition, replica in broker.replicas.items():
                config = broker.log_config(partition)
                if config.deletes:
                    replica.log.retain(config, now, replica.high_watermark)
                if config.compacts:
                    replica.log.compact(config, now, replica.high_watermark)
                replica.log.expire_producers(now, broker.settings.number("producer.id.expiration.ms"))
        pause = max(self._settings("log.retention.check.interval.ms"), 100)
        self._timers.set("clean logs", now + pause, self._clean)
