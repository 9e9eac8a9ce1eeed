"""A group's history as its page asks for it: how much is known, and the part that is shown."""

from typing import Protocol

from kelpie.doctor.group_history import GroupHistory
from kelpie.model.time import Instant
from kelpie.web import charts
from kelpie.web.drawing.scale import Frame


class GroupPast(Protocol):
    @property
    def whole(self) -> Frame | None:
        """From when to when something is known. None: nothing is."""

    @property
    def usual_ms(self) -> int | None:
        """How much of the end is shown unless a person asks for another part. None: everything."""

    def within(self, frame: Frame) -> GroupHistory:
        """At least what is known of this time."""


class RememberedPast:
    """All of it is at hand."""

    usual_ms = None

    def __init__(self, known: GroupHistory, now: Instant) -> None:
        self._known = known
        self._now = now

    @property
    def whole(self) -> Frame | None:
        return charts.whole_of(self._known, self._now)

    def within(self, _: Frame) -> GroupHistory:
        return self._known


class LongPast:
    """What tables tell, and after it what Kelpie has seen itself."""

    def __init__(self, early: GroupPast, late: GroupPast) -> None:
        self._early, self._late = early, late
        self.usual_ms = early.usual_ms

    @property
    def whole(self) -> Frame | None:
        known = [frame for frame in (self._early.whole, self._late.whole) if frame is not None]
        return Frame(min(each.begin for each in known), max(each.end for each in known)) if known else None

    def within(self, frame: Frame) -> GroupHistory:
        return charts.joined(self._early.within(frame), self._late.within(frame))
