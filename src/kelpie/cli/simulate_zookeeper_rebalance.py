"""kelpie simulate zookeeper-rebalance: how often groups of Kafka 0.8's consumers fail to rebalance."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kelpie.api.simulating import rebalance_trials
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.pictures import add_picture_option, check_pictures, write_pictures
from kelpie.cli.progress import progress
from kelpie.cli.share_text import share_text
from kelpie.cli.terminal import text_width
from kelpie.cli.text_table import text_table
from kelpie.client import java_properties
from kelpie.client.client_errors import BadSettings
from kelpie.documents.simulations import advice_document, rebalance_trials_document
from kelpie.model.cells import fill
from kelpie.zookeeper.advice import outlasts, suggest, verdict
from kelpie.zookeeper.config import Behaviour
from kelpie.zookeeper.simulation.events import EVENTS
from kelpie.zookeeper.simulation.group import GroupSettings
from kelpie.zookeeper.simulation.trials import Trials

_MOST_SEEDS, _MOST_MEMBERS, _MOST_PARTITIONS = 100_000, 200, 2_000
_USUAL_EVENTS = ("kill+join", "kill+leave", "restart-all")
_SIZES = (2, 4, 8)


def add_zookeeper_rebalance(subjects: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subjects.add_parser(
        "zookeeper-rebalance",
        help="how often consumers of Kafka 0.8 fail to rebalance",
        description="Runs groups of Kafka 0.8's high-level consumer on a simulated ZooKeeper. Prints the "
        "share of runs in which a rebalance failed, with its 95 % confidence interval, and how long "
        "partitions were read by nobody.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie simulate zookeeper-rebalance
                groups of 2, 4 and 8 members with default settings
            kelpie simulate zookeeper-rebalance --properties consumer.properties --members 6 --advise
                which of these settings to change
        """,
        statuses={ExitStatus.OK: "done"},
    )
    events = ", ".join(EVENTS)
    option(parser, "--members N", "sizes of the group; 2, 4 and 8 if left out", type=int, nargs="+")
    option(parser, "--threads N", "of each member, and topic; 1 if left out", type=int, default=1)
    option(parser, "--partitions N", "of each topic; 8 if left out", type=int, default=8)
    option(parser, "--topics N", "1 if left out", type=int, default=1)
    option(parser, "--retries N", "rebalance.max.retries; 4 if left out", type=int)
    option(parser, "--backoff MS", "rebalance.backoff.ms; 2000 if left out", type=int)
    option(parser, "--session-timeout MS", "zookeeper.session.timeout.ms; 6000 if left out", type=int)
    option(parser, "--tick MS", "tickTime of ZooKeeper; 2000 if left out", type=int, default=2_000)
    option(parser, "--properties FILE", "consumer.properties that has these settings", type=Path)
    parser.add_argument(
        "--event",
        action="append",
        choices=list(EVENTS),
        metavar="NAME",
        help=f"of {events}; can be repeated; {', '.join(_USUAL_EVENTS)} if left out",
    )
    parser.add_argument(
        "--mode",
        choices=[behaviour.value for behaviour in Behaviour],
        default=Behaviour.FAITHFUL.value,
        help="faithful: as Kafka 0.8.2.2, which is the default; recovering: as Kelpie's own consumer",
    )
    option(parser, "--seeds N", "runs of each; 100 if left out", type=int, default=100)
    option(parser, "--first-seed SEED", "0 if left out", type=int, default=0)
    option(parser, "--advise", "say which settings to change to what, with numbers of before and after")
    add_json_option(parser, "simulate-rebalance", "all numbers, as JSON")
    add_picture_option(parser)


def _run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    sizes = arguments.members or list(_SIZES)
    for size in sizes:
        _check("--members", size, 1, _MOST_MEMBERS)
    check_pictures(arguments.picture)
    if arguments.advise:
        return _advise(arguments, replace(settings, members=sizes[0] if arguments.members else 4))
    results: list[Trials] = []
    for name in arguments.event or _USUAL_EVENTS:
        event = EVENTS[name]
        with progress("simulate", name):
            of_event = [
                rebalance_trials(replace(settings, members=size), name, arguments.seeds, arguments.first_seed)
                for size in sizes
                if size >= event.least_members
            ]
        if not of_event:
            raise CommandError(f"--event {name} needs {event.least_members} members or more.")
        if not arguments.json:
            print(_table(name, of_event), end="\n\n", flush=True)
        results += of_event
    if arguments.json:
        print_json(rebalance_trials_document(results))
    else:
        print(_legend(arguments.seeds, settings))
    if arguments.picture:
        _draw(results, arguments.picture)
    return 0


def _settings(arguments: argparse.Namespace) -> GroupSettings:
    of_file = _of_file(arguments.properties) if arguments.properties else {}
    settings = GroupSettings(
        threads=_check("--threads", arguments.threads, 1, 100),
        partitions=_check("--partitions", arguments.partitions, 1, _MOST_PARTITIONS),
        topics=_check("--topics", arguments.topics, 1, 50),
        retries=_check("--retries", _first(arguments.retries, of_file.get("retries"), 4), 1, 1_000),
        backoff_ms=_check("--backoff", _first(arguments.backoff, of_file.get("backoff"), 2_000), 1, 600_000),
        session_timeout_ms=_check(
            "--session-timeout",
            _first(arguments.session_timeout, of_file.get("session"), 6_000),
            100,
            3_600_000,
        ),
        tick_ms=_check("--tick", arguments.tick, 1, 60_000),
        behaviour=Behaviour(arguments.mode),
    )
    _check("--seeds", arguments.seeds, 1, _MOST_SEEDS)
    return settings


def _of_file(path: Path) -> Mapping[str, int]:
    """The settings of a consumer.properties that count here."""
    try:
        properties = java_properties.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise CommandError(f"--properties {path} cannot be read: {error.strerror}.") from None
    except BadSettings as error:
        raise CommandError(f"--properties {path}: {error}") from None
    names = {
        "session": ("zookeeper.session.timeout.ms",),
        "retries": ("rebalance.max.retries",),
        "backoff": ("rebalance.backoff.ms", "zookeeper.sync.time.ms"),  # 0.8 takes the second for the first.
    }
    settings: dict[str, int] = {}
    for setting, keys in names.items():
        for key in keys:
            if key in properties and setting not in settings:
                try:
                    settings[setting] = int(properties[key])
                except ValueError:
                    raise CommandError(f"{path}: {key}={properties[key]} is not a number.") from None
    return settings


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _check(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise CommandError(f"{name} {value}: choose {least:,} to {most:,}.")
    return value


def _table(event: str, results: list[Trials]) -> str:
    rows = [["  members", "failed %", "failing", "idle", "unread, median", "95 %"]]
    rows += [
        [
            f"  {trials.settings.members}",
            share_text(trials.failed),
            f"{trials.failed_members / trials.runs:.2f}",
            f"{trials.idle_members / trials.runs:.2f}",
            _seconds(trials.unread_quantile(0.5)),
            _seconds(trials.unread_quantile(0.95)),
        ]
        for trials in results
    ]
    return f"{event}: {EVENTS[event].what}\n{text_table(rows)}"


def _seconds(ms: int | None) -> str:
    return "never" if ms is None else f"{ms / 1_000:.1f} s"


def _legend(seeds: int, settings: GroupSettings) -> str:
    text = (
        f"{seeds:,} runs each; session {settings.session_timeout_ms} ms, {settings.retries} retries, "
        f"back-off {settings.backoff_ms} ms, {settings.partitions} partitions. failed %: runs in which a "
        "rebalance failed, and the 95 % confidence interval. failing, idle: members per run whose rebalance "
        "failed, and that own nothing at the end or have given up. unread: from the event until every "
        'partition was read again; "never": not before someone starts members.'
    )
    return fill(text, text_width())


def _draw(results: list[Trials], paths: list[Path]) -> None:
    from kelpie.plots.zookeeper_rebalance import failures_by_size  # noqa: PLC0415 - matplotlib loads slowly.

    write_pictures(failures_by_size(results), paths)


def _advise(arguments: argparse.Namespace, settings: GroupSettings) -> int:
    suggestions = suggest(settings)
    cases = [("as it is", settings), *((suggestion.name, suggestion.settings) for suggestion in suggestions)]
    events = arguments.event or _USUAL_EVENTS
    for event in events:
        if settings.members < EVENTS[event].least_members:
            raise CommandError(f"--event {event} needs {EVENTS[event].least_members} members or more.")
    with progress("simulate", "trying settings"):
        results = {
            name: [rebalance_trials(case, event, arguments.seeds, arguments.first_seed) for event in events]
            for name, case in cases
        }
    if arguments.json:
        suggested = [(suggestion, results[suggestion.name]) for suggestion in suggestions]
        print_json(advice_document(outlasts(settings), results["as it is"], suggested))
        return 0
    print(fill(verdict(settings), text_width()))
    for suggestion in suggestions:
        print(f"\n{suggestion.name}: {', '.join(suggestion.changes)}")
        print(fill(suggestion.why, text_width(), "  ", "  "))
    rows = [["", *events]]
    rows += [[name, *(_cell(trials) for trials in results[name])] for name, _ in cases]
    print(f"\n% of {arguments.seeds:,} runs that failed; median time without readers")
    print(text_table(rows))
    if arguments.picture:
        _draw([trials for of_case in results.values() for trials in of_case], arguments.picture)
    return 0


def _cell(trials: Trials) -> str:
    return f"{100 * trials.failed.observed:.3g} %, {_seconds(trials.unread_quantile(0.5))}"
