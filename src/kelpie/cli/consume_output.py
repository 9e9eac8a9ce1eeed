"""What `kelpie consume` writes: records to standard output, and what the consumer does to standard error."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from kelpie.cli.json_output import print_json, print_json_line
from kelpie.cli.terminal import terminal_width, text_width
from kelpie.client.consumer import Change
from kelpie.consumer import effects
from kelpie.consumer.effects import ConsumedRecord
from kelpie.consumer.steps import ConsumerStep, StepKind
from kelpie.documents.consumed import consumed_document, counts_document
from kelpie.model.cells import cells, fill, padded
from kelpie.model.names import TopicPartition
from kelpie.model.quoting import harmless
from kelpie.model.words import counted
from kelpie.zookeeper import steps as zookeeper_steps
from kelpie.zookeeper.assignment import partitions_of
from kelpie.zookeeper.steps import RecordedStep, Step

_COUNT_EVERY_S = 5.0
_OF_REBALANCES = {
    StepKind.LOOKUP,
    StepKind.JOIN,
    StepKind.SYNC,
    StepKind.COMMITTED,
    StepKind.RESET,
    StepKind.LEAVE,
}


class Narrator:
    """Sentences with their time, for a person. Folded to the terminal's width, if there is one."""

    def __init__(self, *, is_quiet: bool = False, is_verbose: bool = False) -> None:
        self._is_quiet, self._is_verbose = is_quiet, is_verbose

    def say(self, sentence: str, at: float | None = None) -> None:
        if self._is_quiet:
            return
        clock = datetime.fromtimestamp(time.time() if at is None else at).strftime("%H:%M:%S ")
        text = f"{clock}{harmless(sentence)}"
        if terminal_width(sys.stderr) is not None:
            text = fill(text, text_width(sys.stderr), "", " " * len(clock))
        print(text, file=sys.stderr, flush=True)

    def zookeeper_step(self, recorded: RecordedStep) -> None:
        if self._is_verbose or not _is_detail(recorded.step):
            self.say(recorded.step.sentence, recorded.at / 1000)

    def step(self, step: ConsumerStep) -> None:
        if not (self._is_verbose or step.failed or step.kind in _OF_REBALANCES):
            return
        if step.asked_of:
            what = f"{step.request} to {step.asked_of}: {step.answer}."
            self.say(f"{what} {step.follows}" if step.follows else what, step.at / 1000)
        elif step.follows:
            self.say(step.follows, step.at / 1000)

    def change(self, change: Change) -> None:
        partitions = partitions_of(change.partitions)
        match change:
            case effects.PartitionsAssigned():
                self.say(f"Reads {partitions}.")
            case effects.PartitionsRevoked():
                self.say(f"Gives up {partitions}.")
            case effects.PartitionsLost():
                self.say(f"Has lost {partitions}: another member may read them already.")


def _is_detail(step: Step) -> bool:
    """What a person only wants to know when looking closely."""
    match step:
        case zookeeper_steps.OffsetsCommitted(offsets, at_rebalance):
            return not offsets or not at_rebalance
        case zookeeper_steps.FetchersStopped(partitions) | zookeeper_steps.OwnersReleased(partitions):
            return not partitions
        case zookeeper_steps.Claimed() | zookeeper_steps.Registered():
            return True
        case _:
            return False


class RecordOutput(Protocol):
    """What is done with records."""

    count: int

    def show(self, records: Sequence[ConsumedRecord]) -> None: ...

    def end(self) -> None:
        """No more records come."""


def output_for(narrator: Narrator, *, is_count: bool, is_json: bool) -> RecordOutput:
    if is_count:
        return RecordCounter(narrator, is_json=is_json)
    return RecordLines() if is_json else RecordPrinter()


class RecordPrinter:
    """Values, one a line: raw into a file or a pipe, harmless on a terminal."""

    def __init__(self) -> None:
        self.count = 0
        self._is_terminal = sys.stdout.isatty()

    def show(self, records: Sequence[ConsumedRecord]) -> None:
        if not records:
            return
        values = [b"null" if record.value is None else record.value for record in records]
        if self._is_terminal:
            for value in values:
                print(harmless(value.decode(errors="backslashreplace")))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(b"".join(value + b"\n" for value in values))
        sys.stdout.flush()
        self.count += len(values)

    def end(self) -> None:
        """Everything has been printed."""


class RecordLines:
    """A line of JSON for each record."""

    def __init__(self) -> None:
        self.count = 0

    def show(self, records: Sequence[ConsumedRecord]) -> None:
        for record in records:
            print_json_line(consumed_document(record))
        self.count += len(records)

    def end(self) -> None:
        """Everything has been printed."""


class RecordCounter:
    """Counts by partition; printed at the end."""

    def __init__(self, narrator: Narrator, *, is_json: bool = False) -> None:
        self.count = 0
        self._narrator, self._is_json = narrator, is_json
        self._by_partition: Counter[TopicPartition] = Counter()
        self._told, self._told_at = 0, time.monotonic()

    def show(self, records: Sequence[ConsumedRecord]) -> None:
        self.count += len(records)
        self._by_partition.update(TopicPartition(record.topic, record.partition) for record in records)
        if self.count > self._told and time.monotonic() >= self._told_at + _COUNT_EVERY_S:
            self._told, self._told_at = self.count, time.monotonic()
            self._narrator.say(f"{counted(self.count, 'record')} so far.")

    def end(self) -> None:
        if self._is_json:
            print_json(counts_document(self._by_partition))
            return
        rows = [
            (harmless(str(partition)), number) for partition, number in sorted(self._by_partition.items())
        ]
        rows.append(("total", self.count))
        width = max(cells(name) for name, _ in rows)
        for name, number in rows:
            print(f"{padded(name, width)}  {number:>12,}")
