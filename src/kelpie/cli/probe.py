"""kelpie probe: the way of a consumer to its next record, step by step, and the step that fails."""

import argparse
import asyncio
import sys
from dataclasses import replace

from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.terminal import text_width
from kelpie.client.probe import ChapterStatus, Probe, ProbeChapter, ProbeReport, ProbeTarget
from kelpie.consumer.config import GroupProtocol
from kelpie.consumer.positions.reset_policy import LATEST, ResetPolicy
from kelpie.consumer.steps import ConsumerStep
from kelpie.documents.probe import probe_document
from kelpie.model.cells import fill
from kelpie.model.quoting import harmless

_MARKS = {ChapterStatus.OK: "ok", ChapterStatus.FAILED: "FAILED", ChapterStatus.SKIPPED: "not done"}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "probe",
        description="Walks the way of a consumer, from the bootstrap address to the record it would read "
        "next, and tells each step. The group is only read, never joined: joining is tried with a scratch "
        "group on the same partition of __consumer_offsets, which is left and deleted again.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie probe -b kafka-1:9092 billing
                the way of a consumer of this group; the group is only read
            kelpie probe -b kafka-1:9092 --topic orders --reset earliest
                the way of a new consumer of this topic
            kelpie probe -b kafka-1:9092 billing --no-join -v
                without a scratch group, with every request
        """,
        statuses={
            ExitStatus.OK: "the way is free",
            ExitStatus.NO: "a step fails",
        },
    )
    parser.add_argument("group", nargs="?", metavar="GROUP", help="the group whose way is walked")
    option(
        parser, "--topic T", "read this topic: needed without a GROUP, or where nothing tells what it reads"
    )
    joining = parser.add_mutually_exclusive_group()
    option(
        joining, "--join NAME", "join a group of this very name, and leave again: it is rebalanced by that"
    )
    option(joining, "--no-join", "join nothing, not even a scratch group")
    option(
        parser,
        "--reset POLICY",
        "where to begin without a committed offset: earliest, latest, none, by_duration:PT1H; latest, "
        "as in Kafka, if left out",
        type=_policy,
        default=LATEST,
    )
    parser.add_argument(
        "--protocol",
        choices=[protocol.value for protocol in GroupProtocol],
        default=GroupProtocol.CLASSIC.value,
        help="the group protocol to join with: classic, or consumer (KIP-848, Kafka 4.0 and later); "
        "%(default)s if left out",
    )
    add_json_option(parser, "probe")
    option(parser, "-v --verbose", "tell every request, too")
    add_connection_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.group is None and arguments.topic is None:
        raise CommandError("What should it probe? Name a GROUP, or a topic with --topic.")
    if arguments.group == "":
        raise CommandError("The empty group cannot be joined, so there is no way to walk.")
    settings = replace(settings_from(arguments), client_id="kelpie-probe")
    target = ProbeTarget(
        arguments.group,
        arguments.topic,
        join_as=arguments.join,
        joins=not arguments.no_join,
        policy=arguments.reset,
        protocol=GroupProtocol(arguments.protocol),
    )
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    printer = _Printer(arguments.verbose) if not arguments.json else None
    probe = Probe(settings, target, None if printer is None else printer.chapter)
    report = asyncio.run(probe.run())
    if printer is not None:
        printer.end(report)
    else:
        print_json(probe_document(report))
    return ExitStatus.OK if report.reached else ExitStatus.NO


def _policy(text: str) -> ResetPolicy:
    try:
        return ResetPolicy.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class _Printer:
    """Prints each chapter of the report as soon as it is complete."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._number = 0

    def chapter(self, chapter: ProbeChapter) -> None:
        self._number += 1
        head = f"{self._number}. {chapter.title}"
        mark = _MARKS[chapter.verdict]
        print(f"{head} {'.' * max(3, text_width() - len(head) - len(mark) - 2)} {mark}")
        for sentence in chapter.said:
            self._say(sentence)
        if self._verbose:
            for step in chapter.steps:
                self._step(step)
        if chapter.verdict is ChapterStatus.FAILED:
            self._say(chapter.why, "Why: ")
            self._say(chapter.needed, "What it would take: ")
            for step in chapter.steps[-3:] if not self._verbose else ():
                self._step(step)
        print(flush=True)

    def end(self, report: ProbeReport) -> None:
        who = "A consumer" if report.group is None else f"A consumer of {report.group}"
        if report.reached:
            partitions = len(report.starts)
            where = f"in all {partitions} partitions" if partitions > 1 else "in its partition"
            self._print(f"{who} gets to its next record {where}.")
        else:
            title = report.failure.title if report.failure is not None else "the way"
            self._print(f'{who} gets no further than "{title}".')

    def _step(self, step: ConsumerStep) -> None:
        times = f", {step.times} times" if step.times > 1 else ""
        asked = f"{step.request} to {step.asked_of}{times}" if step.asked_of else step.kind.value
        answer = f": {step.answer} ({step.elapsed_ms} ms)" if step.asked_of else f": {step.follows}"
        self._say(f"{asked}{answer}", "- ")

    def _say(self, text: str, head: str = "") -> None:
        if text:
            self._print(f"{head}{text}", indent="   ", further="   " + " " * (2 if head == "- " else 0))

    @staticmethod
    def _print(text: str, indent: str = "", further: str = "") -> None:
        print(fill(harmless(text), text_width(), indent, further))
