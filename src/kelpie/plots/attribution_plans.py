"""The comparison of plans that keep the group of every fetch: a bar per scenario and plan."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kelpie.attribution.simulation.trials import Trials
from kelpie.plots.picture import in_style, new_figure

_PARTS = (("right", "#3b7a57"), ("ambiguous", "#b0b0b0"), ("lost", "#e69f00"), ("wrong", "#b2182b"))
"""In this order from the left. The colours differ in lightness, too."""
_NAMES_INCHES, _COLUMN_INCHES, _HEAD_INCHES, _ROW_INCHES = 1.5, 1.9, 1.2, 0.38
_BAR = 0.5
_LEAST_SHOWN = 0.01
"""Of a bar's width: a part that exists is seen, however small it is."""


@in_style
def plan_comparison(results: Sequence[Trials]) -> Figure:
    plans = list(dict.fromkeys(trials.plan for trials in results))
    scenarios = list(dict.fromkeys(trials.scenario for trials in results))
    seeds = max((trials.seeds for trials in results), default=0)
    figure = new_figure(
        _NAMES_INCHES + _COLUMN_INCHES * len(plans), _HEAD_INCHES + _ROW_INCHES * len(scenarios)
    )
    figure.suptitle(
        "Whose fetch is this: what each plan says\n"
        f"Parts of all fetches of {seeds:,} runs each; ◆: share of runs that leak a mapping"
    )
    columns = figure.subplots(1, len(plans), sharey=True, squeeze=False)[0]
    for plan, axes in zip(plans, columns, strict=True):
        _frame(axes, plan, scenarios)
    for trials in results:
        _bar(columns[plans.index(trials.plan)], scenarios.index(trials.scenario), trials)
    figure.legend(
        handles=[Patch(color=colour, label=part) for part, colour in _PARTS],
        loc="outside lower center",
        ncols=len(_PARTS),
        frameon=False,
    )
    return figure


def _frame(axes: Axes, plan: str, scenarios: list[str]) -> None:
    axes.set_title(plan, fontweight="bold", fontsize="medium", loc="left")
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.set_yticks(range(len(scenarios)), scenarios)
    axes.set_ylim(len(scenarios) - 0.3, -0.5)
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)


def _bar(axes: Axes, row: int, trials: Trials) -> None:
    tally = trials.tally
    counts = {"right": tally.right, "ambiguous": tally.ambiguous, "lost": tally.lost, "wrong": tally.wrong}
    total = max(1, tally.counted)
    left = 0.0
    for part, colour in _PARTS:
        width = counts[part] / total
        if counts[part]:
            shown = max(_LEAST_SHOWN, width)
            axes.barh(row, shown, _BAR, left=min(left, 1 - shown), color=colour)
        left += width
    bad = tally.lost + tally.wrong
    words = f"{100 * bad / total:.3g} % lost or wrong" if bad else "nothing lost or wrong"
    if trials.runs_that_leaked:
        words += f"  ◆ {100 * trials.runs_that_leaked / trials.seeds:.3g} %"
    axes.text(0, row + _BAR / 2 + 0.04, words, fontsize="x-small", verticalalignment="top")
