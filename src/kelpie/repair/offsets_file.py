"""Offsets in the CSV of Kafka's own tool: kafka-consumer-groups --reset-offsets --export and --from-file.

No heading; a row is topic,partition,offset, or group,topic,partition,offset as the tool writes it when it
is asked for several groups. Texts with commas or quotes stand in quotes, which are doubled inside.
"""

import csv
import io
from collections.abc import Iterable, Mapping

from kelpie.model.names import TopicPartition
from kelpie.model.numbers import whole_number
from kelpie.repair.plan import CannotRepair

LARGEST_OFFSET = 2**63 - 1
_LARGEST_PARTITION = 2**31 - 1
_LONGEST_SHOWN = 40


def write(offsets: Mapping[TopicPartition, int], group: str | None = None) -> str:
    """With a group, its name comes first in every row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for partition, offset in sorted(offsets.items()):
        writer.writerow([*([] if group is None else [group]), *partition, offset])
    return text.getvalue()


def read(text: str, group: str, file: str) -> dict[TopicPartition, int]:
    """The offsets of one group. Raises CannotRepair for what is no such file, naming the line."""
    offsets: dict[TopicPartition, int] = {}
    groups: set[str] = set()
    for line, row in _rows(text, file):
        if len(row) == 4:
            groups.add(row[0])
            if row[0] != group:
                continue
        elif len(row) != 3:
            raise _wrong(file, line, f"it has {len(row)} columns; topic,partition,offset is wanted")
        topic, partition, offset = row[-3:]
        where = TopicPartition(topic, _number(partition, "a partition", _LARGEST_PARTITION, file, line))
        if where in offsets:
            raise _wrong(file, line, f"{where} was named before")
        offsets[where] = _number(offset, "an offset", LARGEST_OFFSET, file, line)
    if not offsets:
        named = f"; it names {', '.join(sorted(groups))}" if groups else ""
        raise CannotRepair(f"{file} holds no offsets of group {group}{named}.")
    return offsets


def _rows(text: str, file: str) -> Iterable[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if row and any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise _wrong(file, reader.line_num, str(error)) from None


def _number(text: str, what: str, largest: int, file: str, line: int) -> int:
    number = whole_number(text.strip())
    if number is None or number > largest:
        raise _wrong(file, line, f"{text[:_LONGEST_SHOWN]!r} is not the number of {what}")
    return number


def _wrong(file: str, line: int, why: str) -> CannotRepair:
    return CannotRepair(
        f"{file}, line {line}: {why}. Kafka's own tool writes such files: kafka-consumer-groups "
        "--reset-offsets --export."
    )
