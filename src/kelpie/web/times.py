"""Times in addresses: `at` picks a look, `from` and `to` a part of the history. Anything else is left out.

An address with times shows the same to everybody whom it is sent to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from kelpie.model.time import Instant, iso_time, plausible, time_from
from kelpie.web.drawing.scale import DAY, HOUR, MINUTE, Frame

AT, FROM, TO = "at", "from", "to"
SPANS = (15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY)
"""That a person can choose, as far back from the end."""
_SHORTEST = 10_000
_LONGEST_TEXT = 40


def asked(query: Mapping[str, str], name: str) -> Instant | None:
    """As ISO 8601, or in milliseconds since 1970."""
    text = query.get(name, "").strip()[:_LONGEST_TEXT]
    if "T" in text:
        text = text.replace(" ", "+")  # As it is written in an address, + is a space.
    try:
        return plausible(int(text) if text.isascii() and text.isdecimal() else time_from(text))
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Period:
    """Which part of what is known a page shows."""

    whole: Frame
    frame: Frame
    query: Mapping[str, str]
    """Of the address, without times."""

    @classmethod
    def of(cls, query: Mapping[str, str], whole: Frame, usual_ms: int | None = None) -> "Period":
        """`usual_ms`: how much of the end is shown if nobody asks for another part. None: everything."""
        begin, end = asked(query, FROM), asked(query, TO)
        usual = whole.begin if usual_ms is None else max(whole.begin, whole.end - usual_ms)
        begin = usual if begin is None else begin
        end = whole.end if end is None else end
        rest = {name: text for name, text in query.items() if name not in (FROM, TO)}
        return cls(whole, _within(Frame(begin, end), whole), rest)

    def address(self, begin: Instant | None = None, end: Instant | None = None) -> str:
        """The same page of another time; without times, everything."""
        times = {FROM: begin, TO: end}
        words = {name: iso_time(at) for name, at in times.items() if at is not None}
        return "?" + urlencode({**self.query, **words})

    @property
    def spans(self) -> list[tuple[int, str, bool]]:
        """Length, address, and whether it is the one that is shown."""
        rows = []
        for span in SPANS:
            if span < self.whole.span:
                begin = self.whole.end - span
                rows.append(
                    (span, self.address(begin, self.whole.end), self.frame == (begin, self.whole.end))
                )
        return rows

    @property
    def is_whole(self) -> bool:
        return self.frame == self.whole

    @property
    def everything(self) -> str:
        return self.address(self.whole.begin, self.whole.end)

    @property
    def earlier(self) -> str | None:
        if self.frame.begin <= self.whole.begin:
            return None
        begin = max(self.whole.begin, self.frame.begin - self.frame.span // 2)
        return self.address(begin, begin + self.frame.span)

    @property
    def later(self) -> str | None:
        if self.frame.end >= self.whole.end:
            return None
        end = min(self.whole.end, self.frame.end + self.frame.span // 2)
        return self.address(end - self.frame.span, end)

    @property
    def closer(self) -> str | None:
        quarter = self.frame.span // 4
        return (
            None
            if quarter < _SHORTEST
            else self.address(self.frame.begin + quarter, self.frame.end - quarter)
        )

    @property
    def wider(self) -> str | None:
        if self.is_whole:
            return None
        half = self.frame.span // 2
        begin, end = self.frame.begin - half, self.frame.end + half
        return self.address(max(begin, self.whole.begin), min(end, self.whole.end))


def _within(frame: Frame, whole: Frame) -> Frame:
    """A part of it, and not of no length; all of it, if the times are in the wrong order or elsewhere."""
    begin, end = max(frame.begin, whole.begin), min(frame.end, whole.end)
    if begin >= end:
        return whole
    if end - begin < _SHORTEST:
        begin = max(whole.begin, end - _SHORTEST)
    return Frame(begin, end)
