"""The deadlines of a member: next heartbeat, end of session, end of the time between polls (KIP-62)."""

from kelpie.consumer.config import ConsumerConfig
from kelpie.model.time import Instant


class Clocks:
    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self.next_beat: Instant = 0
        self.session_until: Instant = 0
        self.poll_until: Instant | None = None
        """None: it has never polled."""

    def polled(self, now: Instant) -> None:
        self.poll_until = now + self._config.max_poll_interval_ms

    def joined(self, now: Instant) -> None:
        """A join is a sign of life like a heartbeat."""
        self.heard(now)
        self.beat_in(self._config.heartbeat_interval_ms, now)

    def heard(self, now: Instant) -> None:
        self.session_until = now + self._config.session_timeout_ms

    def beat_in(self, wait_ms: int, now: Instant) -> None:
        self.next_beat = now + wait_ms

    def poll_is_late(self, now: Instant) -> bool:
        return self.poll_until is not None and now >= self.poll_until
