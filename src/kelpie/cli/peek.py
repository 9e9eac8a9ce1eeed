"""kelpie peek: a record as it lies in the log, before anybody decides to skip it."""

import argparse
import asyncio
from collections.abc import Iterator

from kelpie.api.looking import peek
from kelpie.cli.command import CommandError, describe, option
from kelpie.cli.connecting import add_connection_options, settings_from
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.progress import progress
from kelpie.cli.terminal import text_width
from kelpie.client.peek import Batch, Peek, PeekedRecord
from kelpie.documents.peek import peek_document
from kelpie.model.cells import fill
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.quoting import harmless
from kelpie.model.words import counted, moment

_PREVIEW = 256
_MOST = 100


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "peek",
        description="Shows records of one partition as they lie in the log: place, batch, compression, time, "
        "key, headers and the beginning of the value; what a terminal would obey is written out. Joins no "
        "group and commits nothing. Look here before a stalled group is made to skip a record.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie peek -b kafka-1:9092 orders 3 1042
                the record at offset 1042 of orders-3
            kelpie peek -b kafka-1:9092 orders 3 1042 --count 5 --bytes 1000
                five records, and more of each
        """,
        statuses={
            ExitStatus.OK: "the record is there",
            ExitStatus.NO: "it is not: out of range, or compacted away",
            ExitStatus.NOT_KNOWN: "it could not be asked for",
        },
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("partition", type=_number, metavar="PARTITION")
    parser.add_argument("offset", type=_number, metavar="OFFSET")
    option(parser, "--count N", f"so many records, up to {_MOST}; 1 if left out", type=_count, default=1)
    option(
        parser,
        "--bytes N",
        "so many bytes of each key, header and value; %(default)d if left out",
        type=_number,
        default=_PREVIEW,
    )
    add_json_option(parser, "peek")
    add_connection_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments)

    asking = peek(settings, arguments.topic, arguments.partition, arguments.offset, count=arguments.count)
    try:
        with progress("peek", "asking for the record"):
            found = asyncio.run(asking)
    except KelpieError as error:
        raise CommandError(str(error), ExitStatus.NOT_KNOWN) from None
    if arguments.json:
        print_json(peek_document(found, arguments.bytes))
    else:
        print("\n".join(_lines(found, arguments.bytes)))
    return ExitStatus.OK if found.records and found.next_there is None else ExitStatus.NO


def _lines(found: Peek, most: int) -> Iterator[str]:
    name = harmless(str(found.partition))
    if not found.is_in_range:
        holds = f"It holds {found.earliest} to {found.latest - 1}."
        if found.latest == found.earliest:
            holds = f"It is empty; the next record gets {found.latest}."
        way = "before its beginning" if found.offset < found.earliest else "after its end"
        yield _wrapped(f"{name} has no offset {found.offset}: that is {way}. {holds}")
        return
    if found.next_there is not None:
        yield _wrapped(
            f"{name} has no record at offset {found.offset} any more (compaction has removed it, or it was "
            f"never given to a record). The next one is at {found.next_there}:"
        )
        yield ""
    elif not found.records and not found.failure:
        yield _wrapped(f"{name} has no record from offset {found.offset} to its end, {found.latest}.")
    batch: Batch | None = None
    for record in found.records:
        if record.batch != batch:
            batch = record.batch
            yield _wrapped(_batch_words(name, batch))
        yield from _record_lines(record, most)
    if found.failure:
        yield _wrapped(harmless(found.failure))


def _batch_words(name: str, batch: Batch) -> str:
    count = "records" if batch.records < 0 else counted(batch.records, "record")
    codec = "not compressed" if batch.codec == "none" else batch.codec
    text = f"Batch {batch.first} to {batch.last} of {name}: {count}, {batch.size:,} bytes, {codec}"
    if batch.leader_epoch >= 0:
        text += f", leader epoch {batch.leader_epoch}"
    if batch.producer_id >= 0:
        kind = "transactional, " if batch.transactional else ""
        text += f", {kind}producer id {batch.producer_id} (epoch {batch.producer_epoch})"
    return text + "."


def _record_lines(record: PeekedRecord, most: int) -> Iterator[str]:
    at = "no time" if record.at is None else moment(record.at)
    whose = " (the broker's clock)" if record.appended else ""
    if record.marker:
        yield f"  {record.offset}  {at}  control record: {record.marker}. Applications do not see it."
        return
    fate = f", transaction {record.fate}" if record.fate else ""
    yield f"  {record.offset}  {at}{whose}, {counted(record.size, 'byte')}{fate}"
    yield _field("key", record.key, most)
    for name, value in record.headers:
        yield _field(f"header {harmless(name)}", value, most)
    yield _field("value", record.value, most)


def _field(name: str, value: bytes | None, most: int) -> str:
    if value is None:
        return f"    {name}: null"
    shown = _preview(value, most)
    cut = f" … of {len(value):,} bytes" if len(value) > most else ""
    return f"    {name}: {shown}{cut}"


def _preview(value: bytes, most: int) -> str:
    """The beginning, as text where it is text; what a terminal would obey is written out."""
    text = value[:most].decode("utf-8", "backslashreplace")
    return f'"{harmless(text)}"'


def _wrapped(text: str) -> str:
    return fill(text, text_width())


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)


def _count(text: str) -> int:
    number = _number(text)
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"choose 1 to {_MOST}")
    return number
