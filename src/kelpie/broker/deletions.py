"""DeleteRecords requests that wait until the deleted records are gone from every living replica."""

from collections.abc import Callable
from dataclasses import dataclass

from kelpie.broker.host import Host
from kelpie.broker.replica import Replica
from kelpie.errors import ErrorCode
from kelpie.model.names import TopicPartition
from kelpie.model.time import Instant


@dataclass(slots=True, eq=False)
class Deletion:
    """One partition of a request. `low_watermark` is what was reached when it ended."""

    partition: TopicPartition
    offset: int
    error: ErrorCode = ErrorCode.NONE
    low_watermark: int = -1
    done: bool = False


class Deletions:
    def __init__(self, broker: Host) -> None:
        self._broker = broker
        self._waiting: list[_Request] = []

    def wait(
        self, deletions: list[Deletion], finish: Callable[[], None], timeout_ms: int, now: Instant
    ) -> None:
        """Calls `finish` once each deletion is done, or the time is over."""
        request = _Request(deletions, finish)
        for deletion in deletions:
            self._check(deletion)
        if request.open:
            self._waiting.append(request)
            self._broker.timers.set(
                ("deletion", request), now + timeout_ms, lambda at: self._too_late(request)
            )
        else:
            finish()

    def followers_fetched(self, partition: TopicPartition | None = None) -> None:
        """Followers may have deleted too; or, without a partition, leaders may have changed."""
        for request in self._waiting.copy():
            for deletion in request.open:
                if partition is None or deletion.partition == partition:
                    self._check(deletion)
            if not request.open:
                self._end(request)

    def _check(self, deletion: Deletion) -> None:
        if deletion.done:
            return
        replica = self._broker.led(deletion.partition)
        if not isinstance(replica, Replica):
            deletion.done, deletion.error, deletion.low_watermark = True, replica, -1
            return
        deletion.low_watermark = replica.low_watermark(self._broker.image.alive)
        deletion.done = deletion.low_watermark >= deletion.offset

    def _too_late(self, request: "_Request") -> None:
        for deletion in request.open:
            deletion.error, deletion.done = ErrorCode.REQUEST_TIMED_OUT, True
        self._end(request)

    def _end(self, request: "_Request") -> None:
        self._waiting.remove(request)
        self._broker.timers.cancel(("deletion", request))
        request.finish()


@dataclass(slots=True, eq=False)
class _Request:
    deletions: list[Deletion]
    finish: Callable[[], None]

    @property
    def open(self) -> list[Deletion]:
        return [deletion for deletion in self.deletions if not deletion.done]
