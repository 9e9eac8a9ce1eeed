"""kelpie consume: reads topics as a member of a group, and says at each rebalance what it does and why."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kelpie.cli.amounts import seconds
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.consume_output import Narrator, RecordOutput, output_for
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option
from kelpie.client.client_errors import ClientError
from kelpie.client.consumer import ConsumerError
from kelpie.client.consumer.group_reading import GroupReading
from kelpie.client.nodes import Nodes
from kelpie.client.zookeeper import ZooKeeperError
from kelpie.client.zookeeper_consumer import ZookeeperGroupConsumer
from kelpie.consumer.config import BadConfig
from kelpie.consumer.effects import ConsumedRecord
from kelpie.consumer.positions.reset_policy import LATEST, ResetPolicy
from kelpie.model.words import counted
from kelpie.zookeeper.config import BadConfig as BadZookeeperConfig
from kelpie.zookeeper.config import Subscription, ZookeeperConsumerConfig
from kelpie.zookeeper.nodes import UnreadableNode

_POLL_S = 0.5
_MOST_RECORDS = 500
_ZOOKEEPER_LIMIT_S = 10.0
_EARLIEST = ResetPolicy.parse("earliest")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "consume",
        description="Reads topics as a member of a group and prints the values of records. With -b the group "
        "is coordinated by Kafka; with --zookeeper by its members, as in Kafka 0.8 to 1.1, whose consumers "
        "can be in the same group. Says on standard error, at each rebalance, what it does and why. It joins "
        "the group, takes partitions from other members and commits offsets.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie consume -b kafka-1:9092 --group test --topic orders --from-beginning
                records as they come, until Ctrl-C
            kelpie consume -b kafka-1:9092 --group test --topic orders --max-messages 10 --idle 30
                ten records, or as many as there are
            kelpie consume --zookeeper zk-1:2181 --group test --topic orders --count
                as a consumer of Kafka 0.8; numbers only
        """,
        statuses={
            ExitStatus.OK: "it ended as asked",
            ExitStatus.NO: "it failed, or --idle ended it before --max-messages",
            ExitStatus.NOT_KNOWN: "nothing answered",
            ExitStatus.INTERRUPTED: "after Ctrl-C",
            ExitStatus.TERMINATED: "after SIGTERM",
        },
    )
    option(parser, "--group G", "the group to be a member of", required=True)
    option(parser, "--topic T", "a topic to read; may be given again", action="append", required=True)
    option(
        parser,
        "--zookeeper HOST:PORT[,…][/PATH]",
        "instead of -b: the ZooKeeper of the cluster, as zookeeper.connect of its brokers has it",
    )
    option(parser, "--from-beginning", "where no offset is committed, begin with the oldest record")
    option(parser, "--max-messages N", "end after so many records", type=_number)
    option(
        parser,
        "--idle S",
        "end when no record has come for so many seconds; joining the group counts, too",
        type=seconds,
    )
    option(parser, "--count", "count records instead of printing them")
    add_json_option(parser, "consume", "print a line of JSON for each record; with --count, the numbers")
    told = parser.add_mutually_exclusive_group()
    option(told, "-v --verbose", "tell every step")
    option(told, "-q --quiet", "tell no step")
    add_connection_options(parser, instead=("zookeeper",))


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**62:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of records above 0")
    return int(text)


class _Consumer(Protocol):
    async def poll(self, limit_s: float, most: int) -> Sequence[ConsumedRecord]: ...

    async def __aenter__(self) -> "_Consumer": ...

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None: ...


def _run(arguments: argparse.Namespace) -> int:
    has_brokers = arguments.bootstrap_server is not None or arguments.command_config is not None
    if has_brokers == (arguments.zookeeper is not None):
        raise CommandError(
            "Name one of the two: brokers with -b HOST:PORT, for groups of today, or --zookeeper HOST:PORT, "
            "for groups of Kafka 0.8."
        )
    narrator = Narrator(is_quiet=arguments.quiet, is_verbose=arguments.verbose)
    try:
        opening = (
            _of_kafka_0_8(arguments, narrator) if arguments.zookeeper else _of_today(arguments, narrator)
        )
        return asyncio.run(_Run(arguments, narrator).until_the_end(opening))
    except (BadConfig, BadZookeeperConfig) as error:
        raise CommandError(str(error)) from None


async def _of_kafka_0_8(arguments: argparse.Namespace, narrator: Narrator) -> _Consumer:
    threads = dict.fromkeys(arguments.topic, 1)
    return await ZookeeperGroupConsumer.open(
        arguments.zookeeper,
        ZookeeperConsumerConfig(
            group_id=arguments.group, subscription=Subscription(threads), auto_commit_interval_ms=5_000
        ),
        limit_s=arguments.timeout or _ZOOKEEPER_LIMIT_S,
        auto_offset_reset=_EARLIEST if arguments.from_beginning else LATEST,
        on_step=narrator.zookeeper_step,
    )


async def _of_today(arguments: argparse.Namespace, narrator: Narrator) -> _Consumer:
    settings = replace(settings_from(arguments), client_id="kelpie-consume")
    async with await Nodes.open(settings) as nodes:  # Says at once if no broker answers.
        memory = nodes.memory
    return GroupReading(
        settings,
        arguments.group,
        tuple(dict.fromkeys(arguments.topic)),
        memory=memory,
        reset=_EARLIEST if arguments.from_beginning else LATEST,
        on_step=narrator.step,
        on_change=narrator.change,
    )


@dataclass(slots=True)
class _Run:
    arguments: argparse.Namespace
    narrator: Narrator
    signal: int | None = None

    async def until_the_end(self, opening: Awaitable[_Consumer]) -> int:
        self._hear_signals()
        output = output_for(self.narrator, is_count=self.arguments.count, is_json=self.arguments.json)
        try:
            try:
                consumer = await opening
            except (ZooKeeperError, ClientError) as error:
                raise CommandError(str(error), ExitStatus.NOT_KNOWN) from None
            async with consumer:
                is_complete = await self._read(consumer, output)
        except (ZooKeeperError, UnreadableNode, ConsumerError) as error:
            raise CommandError(str(error), ExitStatus.NO) from None
        except asyncio.CancelledError:
            if self.signal is None:
                raise
            output.end()
            return 128 + self.signal
        output.end()
        self.narrator.say(f"Read {counted(output.count, 'record')}.")
        return ExitStatus.OK if is_complete else ExitStatus.NO

    async def _read(self, consumer: _Consumer, output: RecordOutput) -> bool:
        """Whether as many records came as were asked for."""
        now = asyncio.get_running_loop().time
        most, idle_s, last = self.arguments.max_messages, self.arguments.idle, now()
        while most is None or output.count < most:
            left = _MOST_RECORDS if most is None else min(_MOST_RECORDS, most - output.count)
            records = await consumer.poll(_POLL_S, left)
            output.show(records)
            if records:
                last = now()
            elif idle_s is not None and now() - last >= idle_s:
                self.narrator.say(f"No record for {idle_s:g} s: ends.")
                return most is None
        return True

    def _hear_signals(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            self.signal = number
            task.cancel()
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(each)  # The second one ends the program at once.

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end, number)
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
