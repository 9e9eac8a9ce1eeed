"""One event while it is handled: what follows from it so far. At its end this becomes an Outcome."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from kelpie.coordinator.config import GroupConfig
from kelpie.coordinator.notes import Note, NoteKind
from kelpie.coordinator.outcome import CallReply, CoordinatorRecord, Outcome, Timer
from kelpie.coordinator.release_behaviour import GroupBehaviour
from kelpie.errors import ErrorCode
from kelpie.model.time import Instant


class ShardEvent:
    def __init__(self, config: GroupConfig, behaviour: GroupBehaviour, now: Instant) -> None:
        self.config = config
        self.behaviour = behaviour
        self.now = now
        self._at_once: list[CallReply] = []
        self._replies: list[CallReply] = []
        self._refusals: list[tuple[Any, Callable[[ErrorCode], Any]]] = []
        self._timers: dict[Hashable, Instant | None] = {}
        self._records: tuple[CoordinatorRecord, ...] = ()
        self._written: Callable[[ShardEvent], None] | None = None
        self._failed: Callable[[ErrorCode, ShardEvent], None] | None = None
        self._producer: tuple[int, int] | None = None
        self._sequence = -1
        self._abandoned: list[Any] = []
        self._notes: list[Note] = []

    def answer(self, to: Any, response: Any) -> None:
        """Answers now, whether or not the records of this event are written."""
        self._at_once.append(CallReply(to, response))

    def answer_when_written(self, to: Any, response: Any, otherwise: Callable[[ErrorCode], Any]) -> None:
        """Answers once the records of this event are written; now, if there are none.

        If they cannot be written, `otherwise` makes the answer from the error of the append.
        """
        self._replies.append(CallReply(to, response))
        self._refusals.append((to, otherwise))

    def abandon(self, to: Any) -> None:
        """Kafka forgets this call."""
        self._abandoned.append(to)

    def note(self, kind: NoteKind, **values: Any) -> None:
        """Something for the broker's log."""
        self._notes.append(Note(kind, values))

    def note_all(self, notes: Iterable[Note]) -> None:
        self._notes += notes

    def wake(self, key: Hashable, at: Instant | None) -> None:
        """Sets the timer of this key, or takes it away."""
        self._timers[key] = at

    @property
    def writes(self) -> bool:
        return bool(self._records)

    def write(
        self,
        records: Iterable[CoordinatorRecord],
        *,
        written: "Callable[[ShardEvent], None] | None" = None,
        failed: "Callable[[ErrorCode, ShardEvent], None] | None" = None,
        producer: tuple[int, int] | None = None,
        sequence: int = -1,
    ) -> None:
        assert not self.writes, "an event writes one batch at most"
        self._records = tuple(records)
        assert self._records, "nothing to write"
        self._written, self._failed = written, failed
        self._producer, self._sequence = producer, sequence

    def outcome(self) -> Outcome:
        return Outcome(
            records=self._records,
            replies=tuple(self._replies if self.writes else self._at_once + self._replies),
            timers=tuple(Timer(key, at) for key, at in self._timers.items()),
            written=None if self._written is None else self._when_written,
            failed=self._when_failed if self.writes else None,
            producer=self._producer,
            sequence=self._sequence,
            at_once=tuple(self._at_once if self.writes else ()),
            abandoned=tuple(self._abandoned),
            notes=tuple(self._notes),
        )

    def _when_written(self, now: Instant) -> Outcome:
        assert self._written is not None
        event = ShardEvent(self.config, self.behaviour, now)
        self._written(event)
        return event.outcome()

    def _when_failed(self, error: ErrorCode, now: Instant) -> Outcome:
        event = ShardEvent(self.config, self.behaviour, now)
        for to, otherwise in self._refusals:
            event.answer(to, otherwise(error))
        if self._failed is not None:
            self._failed(error, event)
        return event.outcome()
