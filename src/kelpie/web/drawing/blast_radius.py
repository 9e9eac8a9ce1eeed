"""Brokers, and the groups that stop if one of them dies, as lines from left to right."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from kelpie.doctor.broker_loss import BrokerLoss
from kelpie.web.drawing.svg import add, picture, place, text, written

WIDTH = 720
_ROW, _BOX, _BROKER_WIDTH, _GROUPS_AT = 24, 18, 130, 400
_MOST_ROWS = 30
_MOST_BROKERS = 12
_LONGEST_NAME = 40


def blast_radius(
    losses: Sequence[BrokerLoss], broker: Callable[[int], str], more: Callable[[int], str]
) -> Markup | None:
    """`broker` and `more` say what a broker is called, and how many more groups there are.

    None: no group would stop. The page has the same as a table.
    """
    worst = sorted(
        (loss for loss in losses if loss.stopped), key=lambda loss: (-len(loss.stopped), loss.node_id)
    )
    shown = sorted(worst[:_MOST_BROKERS], key=lambda loss: loss.node_id)
    if not shown:
        return None
    most = max(1, _MOST_ROWS // len(shown) - 1)
    ends: dict[tuple[str, int], None] = {}
    lines: list[tuple[int, tuple[str, int]]] = []
    for number, loss in enumerate(shown):
        for group in loss.stopped[:most]:
            ends[group, 0] = None
            lines.append((number, (group, 0)))
        if len(loss.stopped) > most:
            rest = (more(len(loss.stopped) - most), loss.node_id + 1)
            ends[rest] = None
            lines.append((number, rest))
    height = max(len(ends), len(shown)) * _ROW + 4
    root = picture(WIDTH, height, "flows")
    step = height / len(shown)
    centres = [step * number + step / 2 for number in range(len(shown))]
    tops = {end: height / len(ends) * (number + 0.5) for number, end in enumerate(ends)}
    for number, end in lines:
        here, there = place(centres[number]), place(tops[end])
        middle = (_BROKER_WIDTH + _GROUPS_AT) // 2
        curve = f"M{_BROKER_WIDTH} {here}C{middle} {here} {middle} {there} {_GROUPS_AT - 6} {there}"
        add(root, "path", f"flow flow-{number % 4}", d=curve)
    for loss, centre in zip(shown, centres, strict=True):
        add(root, "rect", "box", x=1, y=centre - _BOX / 2, width=_BROKER_WIDTH - 2, height=_BOX, rx=4)
        text(root, (_BROKER_WIDTH / 2, centre + 4), broker(loss.node_id), "of-box")
    for (name, of), top in tops.items():
        text(root, (_GROUPS_AT, top + 4), _short(name), "of-end more" if of else "of-end")
    return written(root)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
