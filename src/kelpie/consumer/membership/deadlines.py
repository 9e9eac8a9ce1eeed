"""The deadlines of a member: next heartbeat, end of session, end of the time between polls (KIP-62)."""

from kelpie.consumer.config import ConsumerConfig
from kelpie.model.time import Instant


class MemberDeadlines:
    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self.next_heartbeat_at: Instant = 0
        self.session_ends_at: Instant = 0
        self.poll_ends_at: Instant | None = None
        """None: it has never polled."""

    def polled(self, now: Instant) -> None:
        self.poll_ends_at = now + self._config.max_poll_interval_ms

    def joined(self, now: Instant) -> None:
        """A join counts as a heartbeat."""
        self.heartbeat_answered(now)
        self.next_heartbeat_in(self._config.heartbeat_interval_ms, now)

    def heartbeat_answered(self, now: Instant) -> None:
        self.session_ends_at = now + self._config.session_timeout_ms

    def next_heartbeat_in(self, wait_ms: int, now: Instant) -> None:
        self.next_heartbeat_at = now + wait_ms

    def poll_expired(self, now: Instant) -> bool:
        return self.poll_ends_at is not None and now >= self.poll_ends_at
