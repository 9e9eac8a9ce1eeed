"""What is gathered while the output of a tool is read."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kelpie.model.time import Instant
from kelpie.observations import GroupState, Observations, ZooKeeperGroup
from kelpie.observations.groups import OTHER_KINDS, UNTOLD
from kelpie.observations.zookeeper_groups import StoredOffset

_MOMENT = re.compile(r"\b(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?) ?(?:UTC|Z)\b")
_IN_NAME = re.compile(r"(?i)group[-_.= ]+")
_OF_OTHER_GROUPS = re.compile(r"(?i)(share|streams)[-_. ]?groups?")
_ENDINGS = frozenset(("txt", "log", "out", "err", "md"))


@dataclass(slots=True)
class Output:
    """What one file says. Rows have `at` None, until it is known when the file was made."""

    name: str
    observations: Observations = field(default_factory=Observations)
    times: list[Instant] = field(default_factory=list)
    """Moments that the text itself names."""
    topic_ids: dict[bytes, str] = field(default_factory=dict)


class Context:
    """Where the reader is: the file, and what a command or an earlier line said about what follows."""

    def __init__(self, name: str) -> None:
        self.output = Output(name)
        self.observations = self.output.observations
        self.group: str | None = None
        """Of the command, for outputs that do not name it: kafka-consumer-groups did so up to 2.3."""
        self.tool = _tool_in(name)
        """As far as is known: "share" or "streams" if the output is of the tool for such groups."""
        self.earliest = False
        self.states: dict[str, GroupState] = {}
        self.stored_offsets: dict[tuple[str, int], list[StoredOffset]] = {}
        """Of groups of ZooKeeper, by group and the line where their table begins."""

    @property
    def group_or_name(self) -> str | None:
        """The group of the command, or of a file name as "describe-group-billing-1.txt"."""
        if self.group is not None:
            return self.group
        base = self.output.name.rpartition("/")[2]
        named = _IN_NAME.search(base)
        return (_without_endings(base[named.end() :]) or None) if named is not None else None

    def source(self, number: int) -> str:
        return f"{self.output.name}:{number}"

    def know(self, group: str, number: int) -> None:
        self.observations.known_groups.setdefault(group, self.source(number))

    def note_kind(self, group: str, kind: str, number: int) -> None:
        """A remark names the kind of a group: share or streams, or consumer, which may be either protocol."""
        if kind in OTHER_KINDS:
            known = self.states.get(group) or GroupState(group, UNTOLD, source=self.source(number))
            self.states[group] = known._replace(kind=kind)

    def note_tool(self, command: str) -> None:
        self.tool = _tool_in(command)

    def note_time(self, command: str) -> None:
        """When a command was run, if a transcript says so beside it: "… (2026-11-15 22:11:42 UTC)"."""
        match = _MOMENT.search(command)
        if match is not None:
            with suppress(ValueError):
                moment = datetime.fromisoformat(match["time"]).replace(tzinfo=UTC)
                self.output.times.append(round(moment.timestamp() * 1000))

    def finish(self) -> None:
        """States and members of one group are two outputs of the tool, and one row of ours."""
        self.observations.states += self.states.values()
        self.observations.zookeeper_groups += [
            ZooKeeperGroup(group, offsets=tuple(offsets), source=self.source(line))
            for (group, line), offsets in self.stored_offsets.items()
        ]
        for listing in self.observations.listings:
            for group in listing.groups:
                self.observations.known_groups.setdefault(group, listing.source)


def _tool_in(text: str) -> str:
    match = _OF_OTHER_GROUPS.search(text)
    return match[1].lower() if match is not None else ""


def _without_endings(name: str) -> str:
    stem, _, ending = name.rpartition(".")
    while stem and ending.lower() in _ENDINGS:
        name = stem
        stem, _, ending = name.rpartition(".")
    return name
