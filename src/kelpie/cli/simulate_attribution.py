"""kelpie simulate attribution: compares plans that keep the mapping from a client's address to its group."""

import argparse
from pathlib import Path

from kelpie.api.simulating import plan_trials
from kelpie.attribution.plans import PLANS
from kelpie.attribution.simulation.scenarios import SCENARIOS
from kelpie.attribution.simulation.trials import Trials
from kelpie.cli.command import CommandError, describe
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.pictures import add_picture_option, check_pictures, write_pictures
from kelpie.cli.progress import progress
from kelpie.cli.share_text import share_text
from kelpie.cli.terminal import terminal_width
from kelpie.cli.text_table import text_table
from kelpie.documents.simulations import plan_trials_document
from kelpie.model.shares import wilson

_MOST_SEEDS = 1_000_000
_WIDE = 140
"""From so many columns on, the table also has shares of fetches."""


def add_attribution(subjects: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    attribution = subjects.add_parser(
        "attribution",
        help="which plan keeps the group of every fetch",
        description="Compares plans that keep the mapping from a client's host and client id to its group. "
        "Prints the share of runs in which a fetch lost its label, went to a wrong group or was ambiguous, "
        "and in which a mapping leaked, each with its 95 % confidence interval.",
    )
    attribution.set_defaults(run=_run)
    describe(
        attribution,
        examples="""
            kelpie simulate attribution
                all plans in all scenarios
            kelpie simulate attribution --plan connection --seeds 1000 --picture plans.svg
                one plan, more runs, and a picture
        """,
        statuses={ExitStatus.OK: "done"},
    )
    attribution.add_argument(
        "--plan", action="append", choices=list(PLANS), metavar="NAME", help=f"of {', '.join(PLANS)}; or all"
    )
    attribution.add_argument(
        "--scenario",
        action="append",
        choices=list(SCENARIOS),
        metavar="NAME",
        help=f"of {', '.join(SCENARIOS)}; or all",
    )
    attribution.add_argument(
        "--seeds", type=int, default=200, metavar="N", help="runs of each; %(default)s if left out"
    )
    attribution.add_argument(
        "--first-seed", type=int, default=0, metavar="SEED", help="%(default)s if left out"
    )
    add_json_option(attribution, "simulate-attribution", "all numbers, as JSON")
    add_picture_option(attribution)


def _run(arguments: argparse.Namespace) -> int:
    if not 0 < arguments.seeds <= _MOST_SEEDS:
        raise CommandError(f"--seeds {arguments.seeds}: choose 1 to {_MOST_SEEDS:,} runs.")
    check_pictures(arguments.picture)
    plans = [name for name in PLANS if name in (arguments.plan or PLANS)]
    scenarios = [name for name in SCENARIOS if name in (arguments.scenario or SCENARIOS)]
    results: list[Trials] = []
    for name in scenarios:
        of_scenario = []
        for plan in plans:
            with progress("simulate", f"{name}, {plan}"):
                of_scenario.append(plan_trials(name, plan, arguments.seeds, arguments.first_seed))
        if not arguments.json:
            wide = (terminal_width() or 0) >= _WIDE
            print(_table(name, of_scenario, wide=wide), end="\n\n", flush=True)
        results += of_scenario
    if arguments.json:
        print_json(plan_trials_document(results))
    else:
        print(f"Each cell: % of {arguments.seeds:,} runs, and its 95 % confidence interval.")
    if arguments.picture:
        _draw(results, arguments.picture)
    return 0


def _draw(results: list[Trials], paths: list[Path]) -> None:
    from kelpie.plots.attribution_plans import plan_comparison  # noqa: PLC0415 - matplotlib loads slowly.

    write_pictures(plan_comparison(results), paths)


def _table(scenario: str, results: list[Trials], *, wide: bool) -> str:
    header = ["  plan", "lost", "wrong group", "ambiguous", "leaked"]
    fetches = ["fetches", "lost", "wrong group", "ambiguous", "uncounted"] if wide else []
    rows = [[*header, *fetches]]
    for trials in results:
        tally = trials.tally
        row = [f"  {trials.plan}", *(share_text(wilson(hits, trials.seeds)) for hits in _hits(trials))]
        if wide:
            counts = (tally.lost, tally.wrong, tally.ambiguous)
            shares = [f"{100 * count / max(1, tally.counted):.3g} %" for count in counts]
            row += [f"{tally.counted:,}", *shares, f"{tally.uncounted:,}"]
        rows.append(row)
    return f"{scenario}: {SCENARIOS[scenario].what}\n{text_table(rows)}"


def _hits(trials: Trials) -> tuple[int, int, int, int]:
    """Runs that lost labels, that had wrong and ambiguous ones, and that leaked mappings."""
    return (
        trials.runs_that_lost,
        trials.runs_with_wrong,
        trials.runs_with_ambiguous,
        trials.runs_that_leaked,
    )
