"""Outputs of Kafka's own tools, kept in files: kafka-topics, kafka-consumer-groups, kafka-share-groups,
kafka-streams-groups, kafka-get-offsets, and ConsumerOffsetChecker of 0.8.

Of every release from 0.9 to 4.x, and also transcripts with commands, several outputs, warnings and errors:
each line is recognised by itself, and unknown lines are skipped. Rows have no time yet; `dating` finds out
when an output was made.

topics       partitions of kafka-topics --describe
tables       tables of kafka-consumer-groups: offsets, members, states, lists
tool_errors  what the tools print when a coordinator does not answer
"""

import re
from collections.abc import Iterable

from kelpie.evidence.describes.output import Context, Output
from kelpie.evidence.describes.tables import ToolTable, is_header
from kelpie.evidence.describes.tool_errors import read_failure
from kelpie.evidence.describes.topics import is_topic_line, read_topic_line
from kelpie.observations import Listing, LogEnds

__all__ = ["Output", "looks_like_output", "read_output"]

_COMMAND = re.compile(
    r"\bkafka-(?:topics|consumer-groups|share-groups|streams-groups|groups|get-offsets|run-class)(?:\.sh|\.bat)?\b.*?\s--?\w|\b(?:GetOffsetShell|ConsumerOffsetChecker)\b.*?\s--?\w"
)
_GROUP_OPTION = re.compile(r"--group[= ]+(\"[^\"]+\"|'[^']+'|\S+)")
_END = re.compile(r"^([a-zA-Z0-9._-]{1,249}):(\d{1,9}):(\d{0,19})$")
_EARLIEST = re.compile(r"--time[= ]+(?:-2|earliest)\b|(?i:earliest|log-?start|beginning)")
_ONE_WORD = re.compile(r"^\S{1,255}$")
_LIST_NAME = re.compile(r"(?i)groups?[-_. ]*list|list[-_. ]*(?:of[-_. ]*)?groups?")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
LARGEST_LINE = 1 << 14
_LONGEST_LIST = 100_000


def looks_like_output(lines: Iterable[str], name: str) -> bool:
    """Whether there is anything of a tool's output in these lines, as they begin a file."""
    seen = list(lines)
    if _is_plain_list(seen, name):
        return True
    return any(
        is_topic_line(line) or is_header(line) or _END.match(line) or read_failure(line, Context(name), 0)
        for line in seen
    )


def read_output(lines: Iterable[str], name: str) -> Output:
    """All rows of one file."""
    context = Context(name)
    table: ToolTable | None = None
    kept: list[str] = []
    for number, raw in enumerate(lines, start=1):
        line = _COLOURS.sub("", raw[:LARGEST_LINE].rstrip())
        if len(kept) < _LONGEST_LIST:
            kept.append(line)
        if not line.strip():
            table = None
        elif is_header(line):
            table = ToolTable(line, context, number)
        elif is_topic_line(line):
            table = None
            read_topic_line(line, context, number)
        elif read_failure(line, context, number):
            pass
        elif _COMMAND.search(line):
            table = None
            _note_command(line, context)
            context.note_time(line)
        elif table is not None and table.row(line, number):
            pass
        else:
            _end(line, context, number)
    if _is_plain_list(kept, name):
        groups = tuple(line for line in kept if line)
        context.observations.listings.append(Listing(None, groups, source=name))
    context.finish()
    return context.output


def _note_command(line: str, context: Context) -> None:
    """A transcript: the command says what the output does not, as which group could not be described."""
    context.note_tool(line)
    named = _GROUP_OPTION.search(line)
    context.group = named[1].strip("\"'") if named is not None else None
    context.earliest = _EARLIEST.search(line) is not None


def _end(line: str, context: Context, number: int) -> None:
    match = _END.match(line)
    if match is None or not match[3]:
        return
    offset = int(match[3])
    if context.earliest or _EARLIEST.search(context.output.name):
        row = LogEnds(match[1], int(match[2]), earliest=offset, source=context.source(number))
    else:
        row = LogEnds(match[1], int(match[2]), latest=offset, source=context.source(number))
    context.observations.ends.append(row)


def _is_plain_list(lines: list[str], name: str) -> bool:
    """`kafka-consumer-groups --list` prints names and nothing else: only the file's name identifies it."""
    named = [line for line in lines if line.strip()]
    return bool(named) and bool(_LIST_NAME.search(name)) and all(_ONE_WORD.match(line) for line in named)
