"""Which group a line is about.

The bracket before the message names the group, or the message does. Lines of Kafka 0.9, of librdkafka and of
kafka-python often have neither. Then other lines of the same file decide: those of the same client, or, if
the file names only one group, that one (a dump of the configuration has it). The last resort is the name of
the file. If the line itself does not name the group, details["group_from"] says what did.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kelpie.observations import Event

NAMES_ITS_GROUP = ("broker: ", "controller: ", "zookeeper-server: ", "zookeeper: ")
"""Kinds of events that no other line attributes: servers' lines name a group if they mean one, and consumers
of Kafka 0.8 have it in their id."""
_NAME_OF_CLIENT = re.compile(r"(?i)^(?:client|consumer|group|app)[-_.](?P<group>.+)$")
_ENDING = re.compile(r"(?i)log|txt|out|err|json|\d+|before|during|after|\d{4}-\d\d-\d\d")

MOST_GROUPS = 200_000
"""That one log names. So many are no application's, and no cluster's."""
_MOST_WORDS = 60
"""Of a file's name, among which the name of a group is looked for."""


@dataclass(slots=True)
class Groups:
    """What a file says about groups, collected while it is read."""

    sure: dict[str, str] = field(default_factory=dict)
    """Group → where it was named first."""
    guessed: tuple[str, str] | None = None
    """Group and place, if a line hints at a group before any line names one."""
    of_client: dict[str, str] = field(default_factory=dict)
    instances: set[str] = field(default_factory=set)
    """Clients of librdkafka whose group is known; their other lines are not searched."""

    @property
    def named(self) -> dict[str, str]:
        if self.guessed is None:
            return self.sure
        return dict([self.guessed]) | {
            group: where for group, where in self.sure.items() if group != self.guessed[0]
        }

    @property
    def are_unknown(self) -> bool:
        return not self.sure and self.guessed is None

    def note(self, group: str, client: str | None, where: str) -> None:
        if len(self.sure) < MOST_GROUPS or group in self.sure:
            self.sure.setdefault(group, where)
        if client and len(self.of_client) < MOST_GROUPS:
            self.of_client.setdefault(client, group)

    def guess(self, group: str, where: str) -> None:
        if self.are_unknown:
            self.guessed = group, where

    def note_instance(self, group: str, instance: str, where: str) -> None:
        self.note(group, instance, where)
        self.instances.add(instance)

    def go_on(self, later: "Groups") -> bool:
        """Adds what a later part of the same file says. False: both parts must be read together."""
        for instance in later.instances:
            if self.of_client.get(instance, later.of_client[instance]) != later.of_client[instance]:
                return False
        if self.are_unknown:
            self.guessed = later.guessed
        for group, where in later.sure.items():
            self.sure.setdefault(group, where)
        for client, group in later.of_client.items():
            self.of_client.setdefault(client, group)
        self.instances |= later.instances
        return True

    def attribute(self, events: Iterable[Event]) -> list[Event]:
        """Events, with the group where the file names it."""
        only = self.only()
        return [self._with_group(event, only) for event in events]

    def only(self) -> tuple[str, str] | None:
        """The group, and where it was named, if the file names one only."""
        named = self.named
        return next(iter(named.items())) if len(named) == 1 else None

    def of(self, client: str, only: tuple[str, str] | None) -> tuple[str, str] | None:
        """The group of a client, and the source."""
        group = self.of_client.get(client)
        return only if group is None else (group, f"other lines of {client}")

    def _with_group(self, event: Event, only: tuple[str, str] | None) -> Event:
        if event.group is not None or names_its_group(event):
            return event
        group_and_source = self.of(event.details.get("instance") or event.client_id or "", only)
        if group_and_source is None:
            return event
        return _attributed(event, *group_and_source)


def names_its_group(event: Event) -> bool:
    return event.kind.value.startswith(NAMES_ITS_GROUP)


def by_file_name(events: Iterable[Event], name: str, known: Mapping[str, str]) -> list[Event]:
    """The last resort: a file that names no group at all is called after one."""
    group = group_in_name(name, known)
    if group is None:
        return list(events)
    return [
        event
        if event.group is not None or names_its_group(event)
        else _attributed(event, group, f"the name of {name}")
        for event in events
    ]


def _attributed(event: Event, group: str, source: str) -> Event:
    return replace(event, group=group, details={**event.details, "group_from": source})


def group_in_name(name: str, known: Mapping[str, str]) -> str | None:
    """A known group that the name contains as a whole word, the longest; else what follows "client-"."""
    base = name.rpartition("/")[2]
    inside = [part for part in _parts(base) if part in known]
    if inside:
        return max(inside, key=len)
    match = _NAME_OF_CLIENT.match(_without_endings(base))
    return match["group"] if match is not None else None


def _without_endings(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    while dot and _ENDING.fullmatch(ending):
        name = stem
        stem, dot, ending = name.rpartition(".")
    return name


def _parts(text: str) -> Iterator[str]:
    """Whatever stands in the text between two ends of words."""
    begins = [place for place in range(len(text)) if not text[place - 1 : place].isalnum()]
    ends = [place for place in range(1, len(text) + 1) if not text[place : place + 1].isalnum()]
    for begin in begins[:_MOST_WORDS]:
        for end in ends[:_MOST_WORDS]:
            if begin < end:
                yield text[begin:end]
