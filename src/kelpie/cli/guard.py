"""kelpie guard: run a consumer, and start it again when its log says that it will not recover."""

import argparse
import re
from pathlib import Path

from kelpie.cli.amounts import duration
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.exit_status import ExitStatus
from kelpie.guard.budget import BackOff
from kelpie.guard.guard_errors import GuardFailed
from kelpie.guard.judgement import Limits, Sign
from kelpie.guard.process import Stream, end_like
from kelpie.guard.runner import Guard, GuardOptions
from kelpie.guard.supervision import Policy

_CHOOSABLE = tuple(sign for sign in Sign if sign not in (Sign.PATTERN, Sign.START_FAILED))
_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
_MOST_PORTS = 65_535
_EXAMPLES = """
    kelpie guard -- java -jar billing.jar
        restart it when its standard error says that it has failed for good
    kelpie guard --watch billing.log --metrics-port 9400 -- ./billing
        its log is a file; metrics on 127.0.0.1:9400
"""
_STATUSES = {
    ExitStatus.OK: "the program ended with 0; in general, its own exit status",
    ExitStatus.CANNOT_RUN: "the program may not be run",
    ExitStatus.NO_SUCH_PROGRAM: "the program is not there",
}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "guard",
        usage="kelpie guard [options] -- COMMAND …",
        description="Runs a consumer and reads its log. When a line says that the consumer will not recover "
        "by itself, ends the process and starts it again. Passes signals on, and ends as the process ends.",
    )
    parser.set_defaults(run=_run)
    describe(parser, examples=_EXAMPLES, statuses=_STATUSES)
    seeing = parser.add_argument_group("what to see")
    option(
        seeing,
        "--watch WHERE[,…]",
        "where the client's log is: stderr, stdout, or log files; stderr if left out",
        action="append",
        default=[],
    )
    option(
        seeing,
        "--fatal REGEX",
        "a line of your own that is fatal, in any watched place",
        action="append",
        default=[],
        type=_pattern,
    )
    option(
        seeing,
        "--restart-on SIGN[,…]",
        f"only these of {', '.join(_CHOOSABLE)}",
        type=_signs,
        default=frozenset(_CHOOSABLE),
    )
    limits, policy = Limits(), Policy()
    _add_time(seeing, "--lookup-limit", "how long lookups of the coordinator may fail", limits.lookup_s)
    _add_time(seeing, "--return-limit", "how long a member that left may take to join again", limits.return_s)
    acting = parser.add_argument_group("what to do")
    _add_time(acting, "--grace", "between SIGTERM and SIGKILL", policy.grace_s)
    _add_time(
        acting, "--backoff", "before the first restart; doubled for each further", policy.back_off.first_s
    )
    _add_time(acting, "--longest-backoff", "the most that it grows to", policy.back_off.longest_s)
    option(
        acting,
        "--restarts-per-hour N",
        "then the guard gives up; %(default)s if left out",
        type=_count,
        default=policy.back_off.per_hour,
    )
    telling = parser.add_argument_group("what to tell")
    option(telling, "--log FILE", "where the guard's own lines go; standard error if left out", type=Path)
    option(telling, "--metrics-file FILE", "for node_exporter's textfile collector; ends in .prom", type=Path)
    option(telling, "--metrics-port PORT", "answer GET /metrics on 127.0.0.1; 0: any port", type=_port)
    option(telling, "--name NAME", "of this guard in metrics; the program's if left out", default="")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)


def _run(arguments: argparse.Namespace) -> int:
    words = tuple(arguments.words)
    command = words[1:] if words[:1] == ("--",) else words
    if not command:
        raise CommandError("No command is given. Write it behind --: kelpie guard -- COMMAND …")
    streams, files = _places(arguments.watch)
    options = GuardOptions(
        command,
        Policy(
            arguments.grace,
            BackOff(arguments.backoff, arguments.longest_backoff, arguments.restarts_per_hour),
            Limits(arguments.lookup_limit, arguments.return_limit),
            arguments.restart_on | {Sign.PATTERN, Sign.START_FAILED},
        ),
        streams=streams,
        files=files,
        patterns=tuple(arguments.fatal),
        name=arguments.name,
        log=arguments.log,
        textfile=arguments.metrics_file,
        port=arguments.metrics_port,
    )
    try:
        ending = Guard(options).run()
    except GuardFailed as error:
        raise CommandError(str(error), error.status) from None
    return end_like(ending)


def _add_time(parser: "argparse._ActionsContainer", name: str, text: str, default_s: float) -> None:
    option(parser, f"{name} TIME", f"{text}; {default_s:g}s if left out", type=duration, default=default_s)


def _places(given: list[str]) -> tuple[tuple[Stream, ...], tuple[Path, ...]]:
    names = [name for text in given for name in text.split(",") if name] or ["stderr"]
    streams = tuple(stream for stream in _STREAMS if stream in names)
    return streams, tuple(Path(name) for name in dict.fromkeys(names) if name not in _STREAMS)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None


def _signs(text: str) -> frozenset[Sign]:
    names = frozenset(text.split(","))
    if names - set(_CHOOSABLE):
        raise argparse.ArgumentTypeError(f"{text!r}: choose of {', '.join(_CHOOSABLE)}")
    return frozenset(Sign(name) for name in names)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of restarts above 0")
    return int(text)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _MOST_PORTS:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)
