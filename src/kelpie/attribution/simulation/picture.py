"""The comparison of plans as a picture (SVG): a bar per scenario and plan, in parts of all fetches."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from kelpie.attribution.simulation.trials import Trials

_PARTS = (("right", "#3b7a57"), ("ambiguous", "#b0b0b0"), ("lost", "#e69f00"), ("wrong", "#b2182b"))
"""In this order from the left. The colours differ in lightness, too."""
_LEFT, _TOP, _ROW, _BAR, _COLUMN, _GAP = 170, 90, 34, 16, 175, 14


def picture(results: Sequence[Trials]) -> str:
    plans = list(dict.fromkeys(trials.plan for trials in results))
    scenarios = list(dict.fromkeys(trials.scenario for trials in results))
    width = _LEFT + len(plans) * (_COLUMN + _GAP) + _GAP
    height = _TOP + len(scenarios) * _ROW + 40
    seeds = max((trials.seeds for trials in results), default=0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(_GAP, 24, "Whose fetch is this: what each plan says", size=16),
        _text(_GAP, 44, f"Parts of all fetches of {seeds:,} runs each; ◆: share of runs that leak a mapping"),
        *_legend(),
    ]
    for column, plan in enumerate(plans):
        lines.append(_text(_LEFT + column * (_COLUMN + _GAP), _TOP - 8, plan, weight="bold"))
    for row, scenario in enumerate(scenarios):
        lines.append(_text(_GAP, _TOP + row * _ROW + _BAR - 3, scenario))
    for trials in results:
        x = _LEFT + plans.index(trials.plan) * (_COLUMN + _GAP)
        y = _TOP + scenarios.index(trials.scenario) * _ROW
        lines += _bar(trials, x, y)
    return "\n".join([*lines, "</svg>", ""])


def _legend() -> list[str]:
    lines = []
    for number, (part, colour) in enumerate(_PARTS):
        x = _GAP + number * 110
        lines.append(f'<rect x="{x}" y="54" width="12" height="12" fill="{colour}"/>')
        lines.append(_text(x + 17, 64, part))
    return lines


def _bar(trials: Trials, x: float, y: float) -> list[str]:
    tally = trials.tally
    counts = {"right": tally.right, "ambiguous": tally.ambiguous, "lost": tally.lost, "wrong": tally.wrong}
    total = max(1, tally.counted)
    words = ", ".join(f"{100 * count / total:.2f} % {part}" for part, count in counts.items())
    lines = [f"<g><title>{escape(f'{trials.scenario}, {trials.plan}: {words}')}</title>"]
    left = x
    for part, colour in _PARTS:
        part_width = _COLUMN * counts[part] / total
        if counts[part]:
            # A part that exists is seen, however small it is.
            shown = max(1.5, part_width)
            begin = min(left, x + _COLUMN - shown)
            lines.append(
                f'<rect x="{begin:.1f}" y="{y}" width="{shown:.1f}" height="{_BAR}" fill="{colour}"/>'
            )
        left += part_width
    bad = tally.lost + tally.wrong
    words = f"{100 * bad / total:.3g} % lost or wrong" if bad else "nothing lost or wrong"
    if trials.runs_that_leaked:
        words += f"  ◆ {100 * trials.runs_that_leaked / trials.seeds:.3g} %"
    return [*lines, _text(x, y + _BAR + 11, words, size=10), "</g>"]


def _text(x: float, y: float, text: str, *, size: int = 12, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}">{escape(text)}</text>'
