"""A share and its interval of confidence, as a cell of a table: "4.2 (1.9–8.8)", in percent."""

from kelpie.model.shares import Share


def share_text(share: Share) -> str:
    return f"{_percent(share.observed)} ({_percent(share.low)}–{_percent(share.high)})"


def _percent(share: float) -> str:
    percent = 100 * share
    if percent in (0.0, 100.0):
        return f"{percent:.0f}"
    return f"{percent:.2g}" if percent < 10 else f"{percent:.1f}"
