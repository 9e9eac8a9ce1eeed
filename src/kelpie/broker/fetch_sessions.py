"""Fetch sessions (KIP-227): the broker remembers what a client fetches, so that requests can be short.

A full request (epoch 0) opens a session; each further one (epoch 1, 2, …) names only what changed, and its
answer only what is new. Epoch −1 closes. A session that a request leaves empty ends as well.

Their number is limited (max.incremental.fetch.session.cache.slots). At the limit, a new session replaces one
that was not used for two minutes, or a smaller one that is that old. Otherwise there is no session, and the
client goes on with full requests.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kelpie.errors import ErrorCode
from kelpie.model.time import Instant
from kelpie.wire.api.fetch import FetchPartition, PartitionData

NEW, FINAL = 0, -1
LARGEST_EPOCH = 2**31 - 1
UNTOUCHED_MS = 120_000
"""min.incremental.fetch.session.eviction.ms"""

Place = tuple[str | bytes, int]
"""A partition as the client named it: by the topic's name or, since version 13, by its id."""


@dataclass(slots=True)
class Asked:
    """One partition of a session: the last request, and what the last answer said about it."""

    topic: str
    topic_id: bytes
    request: FetchPartition
    answered: tuple[int, int] | None = None
    """High watermark and log start offset of the last answer."""

    def news(self, data: PartitionData) -> bool:
        """Whether an answer must include this. If so, it counts as answered from now on."""
        now = (data.high_watermark, data.log_start_offset)
        fresh = bool(data.records) or data.error_code != ErrorCode.NONE or self.answered != now
        self.answered = None if data.error_code != ErrorCode.NONE else now
        return fresh or data.diverging_epoch is not None or data.preferred_read_replica >= 0


@dataclass(slots=True)
class Session:
    session_id: int
    by_id: bool
    created_at: Instant
    used_at: Instant
    epoch: int = 1
    partitions: dict[Place, Asked] = field(default_factory=dict)


class Sessions:
    """The sessions of one broker, the one used last at the end."""

    def __init__(self, slots: int, new_id: Callable[[], str]) -> None:
        self._slots = slots
        self._new_id = new_id
        self._open: dict[int, Session] = {}

    def open(self, partitions: dict[Place, Asked], by_id: bool, now: Instant) -> Session | None:
        if len(self._open) >= self._slots and not self._make_room(len(partitions), now):
            return None
        session = Session(self._unused_id(), by_id, now, now, partitions=partitions)
        self._open[session.session_id] = session
        return session

    def close(self, session_id: int) -> None:
        self._open.pop(session_id, None)

    def continued(self, session_id: int, epoch: int, by_id: bool, now: Instant) -> Session | ErrorCode:
        session = self._open.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if epoch == LARGEST_EPOCH else epoch + 1
        session.used_at = now
        self._open[session_id] = self._open.pop(session_id)
        return session

    def _make_room(self, size: int, now: Instant) -> bool:
        for session in self._open.values():
            if now - session.used_at > UNTOUCHED_MS:
                self.close(session.session_id)
                return True
            break
        old = [session for session in self._open.values() if now - session.created_at > UNTOUCHED_MS]
        smallest = min(old, key=lambda session: len(session.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self.close(smallest.session_id)
        return True

    def _unused_id(self) -> int:
        """Not a running number: a client from before a restart must not get the session of another."""
        while True:
            chosen = int(self._new_id().replace("-", ""), 16) % LARGEST_EPOCH + 1
            if chosen not in self._open:
                return chosen

    def __len__(self) -> int:
        return len(self._open)
