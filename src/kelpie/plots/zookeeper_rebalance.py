"""How often groups of Kafka 0.8's consumers fail to rebalance, and how long nobody reads, by group size."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kelpie.plots.picture import in_style, new_figure
from kelpie.zookeeper.simulation.trials import Trials

_WIDTH_INCHES, _HEIGHT_INCHES = 8.0, 3.6
_COLOURS = ("#b2182b", "#e69f00", "#3b7a57", "#2b5c8a", "#6a3d9a", "#7f7f7f", "#000000", "#a6761d")
_MARKERS = "os^Dv<>p"


@in_style
def failures_by_size(results: Sequence[Trials]) -> Figure:
    figure = new_figure(_WIDTH_INCHES, _HEIGHT_INCHES)
    settings = results[0].settings
    figure.suptitle(
        f"Rebalances of Kafka 0.8 ({settings.behaviour.value}): session {settings.session_timeout_ms} ms, "
        f"{settings.retries} retries, back-off {settings.backoff_ms} ms\n"
        f"{settings.partitions} partitions; {results[0].runs:,} runs each"
    )
    shares, times = figure.subplots(1, 2)
    for number, event in enumerate(dict.fromkeys(trials.event for trials in results)):
        of_event = [trials for trials in results if trials.event == event]
        _draw_shares(shares, of_event, number)
        _draw_times(times, of_event, number)
    sizes = sorted({trials.settings.members for trials in results})
    for axes in (shares, times):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlabel("members of the group")
        axes.spines[["top", "right"]].set_visible(False)
    shares.set_ylabel("runs that failed (95 % interval)")
    shares.set_ylim(-0.03, 1.03)
    times.set_ylabel("s without a reader, median")
    times.set_ylim(bottom=0)
    handles, labels = shares.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _draw_shares(axes: Axes, results: Sequence[Trials], number: int) -> None:
    shares = [trials.failed for trials in results]
    axes.errorbar(
        [trials.settings.members for trials in results],
        [share.observed for share in shares],
        yerr=[
            [share.observed - share.low for share in shares],
            [share.high - share.observed for share in shares],
        ],
        color=_COLOURS[number % len(_COLOURS)],
        marker=_MARKERS[number % len(_MARKERS)],
        capsize=2,
        label=results[0].event,
    )


def _draw_times(axes: Axes, results: Sequence[Trials], number: int) -> None:
    """Groups that never recover have no point."""
    points = [
        (trials.settings.members, unread / 1_000)
        for trials in results
        if (unread := trials.unread_quantile(0.5)) is not None
    ]
    axes.plot(
        [size for size, _ in points],
        [seconds for _, seconds in points],
        color=_COLOURS[number % len(_COLOURS)],
        marker=_MARKERS[number % len(_MARKERS)],
    )
