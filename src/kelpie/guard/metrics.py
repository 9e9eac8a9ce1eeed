"""What a guard counts, as Prometheus reads it, and a file of it for node_exporter's textfile collector."""

import math
from collections.abc import Callable
from pathlib import Path

from kelpie.guard.guard_errors import GuardFailed
from kelpie.guard.judgement import Sign
from kelpie.guard.supervision import Counts
from kelpie.model.prometheus_text import family, sample

_PAUSE_S = 1.0


def exposition(name: str, counts: Counts, *, running: bool, started_at: float) -> str:
    """`name` tells the guards of one machine apart; `started_at` is in seconds since 1970."""

    def one(metric: str, text: str, value: float) -> str:
        return _family(metric, text, [sample({"name": name}, value)])

    def by_sign(metric: str, text: str, values: Callable[[Sign], int]) -> str:
        return _family(metric, text, [sample({"name": name, "sign": sign}, values(sign)) for sign in Sign])

    return "".join(
        (
            one("process_running", "Whether the guarded process runs.", int(running)),
            one("process_start_time_seconds", "When it was started last.", round(started_at, 3)),
            one("starts_total", "Starts of the process, the first one included.", counts.starts),
            by_sign(
                "sightings_total", "Lines that belong to a sign, fatal or not.", counts.sightings.__getitem__
            ),
            by_sign("restarts_total", "Restarts by the sign that led to them.", counts.restarts.__getitem__),
            one("kills_total", "Processes that did not end within the grace time.", counts.kills),
            one("gave_up", "Whether the guard has given up.", int(counts.gave_up)),
        )
    )


def _family(metric: str, text: str, samples: list[str]) -> str:
    kind = "counter" if metric.endswith("_total") else "gauge"
    return family(f"kelpie_guard_{metric}", kind, text, samples)


class Textfile:
    """The metrics in a file, written soon after a change, and not for each line of a flood."""

    def __init__(self, file: Path | None, text: Callable[[], str], on_error: Callable[[str], None]) -> None:
        self._file, self._text, self._on_error = file, text, on_error
        self._is_old = False
        self._next = 0.0

    def open(self) -> None:
        """Raises GuardFailed."""
        if self._file is not None:
            try:
                self._write_whole(self._file)
            except OSError as error:
                raise GuardFailed(f"{self._file} cannot be written: {error.strerror}.") from None

    def changed(self) -> None:
        self._is_old = self._file is not None

    def wait_s(self, now: float) -> float:
        return max(self._next - now, 0.0) if self._is_old else math.inf

    def write_if_due(self, now: float) -> None:
        if self._is_old and now >= self._next:
            self.write()
            self._next = now + _PAUSE_S

    def write(self) -> None:
        self._is_old = False
        if self._file is None:
            return
        try:
            self._write_whole(self._file)
        except OSError as error:
            self._on_error(f"{self._file} cannot be written: {error.strerror}")

    def _write_whole(self, file: Path) -> None:
        """The collector never sees half a file. Raises OSError."""
        partial = file.with_name(f".{file.name}.part")
        partial.write_text(self._text(), encoding="utf-8")
        partial.replace(file)
