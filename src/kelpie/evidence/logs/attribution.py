"""Which group a line is about.

Best is the bracket before the message, or the message. Lines of Kafka 0.9, of librdkafka and of kafka-python
often have neither. Then other lines of the same file tell: the same client elsewhere, or, if the file knows
only one group, that one (a dump of the configuration names it). Last of all the file's name. What was not
read off the line itself is told in details["group_from"].
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kelpie.observations import Event

_OF_SERVERS = ("broker: ", "controller: ")
_NAME_OF_CLIENT = re.compile(r"(?i)^(?:client|consumer|group|app)[-_.](?P<group>.+)$")
_ENDINGS = re.compile(r"(?i)(?:\.(?:log|txt|out|err|json|\d+|before|during|after|\d{4}-\d\d-\d\d))+$")


class Groups:
    """What a file tells about groups, as it is read."""

    def __init__(self) -> None:
        self.named: dict[str, str] = {}
        """Group → where it was named first."""
        self.of_client: dict[str, str] = {}

    def note(self, group: str, client: str | None, where: str) -> None:
        self.named.setdefault(group, where)
        if client:
            self.of_client.setdefault(client, group)

    def attribute(self, events: Iterable[Event]) -> list[Event]:
        """Events, with the group where the file tells it."""
        only = next(iter(self.named)) if len(self.named) == 1 else None
        return [self._with_group(event, only) for event in events]

    def _with_group(self, event: Event, only: str | None) -> Event:
        if event.group is not None or is_of_server(event):
            return event
        client = event.details.get("instance") or event.client_id or ""
        group = self.of_client.get(client)
        told = f"other lines of {client}" if group is not None else ""
        if group is None and only is not None:
            group, told = only, self.named[only]
        if group is None:
            return event
        return replace(event, group=group, details={**event.details, "group_from": told})


def is_of_server(event: Event) -> bool:
    return event.kind.value.startswith(_OF_SERVERS)


def by_file_name(events: Iterable[Event], name: str, known: Mapping[str, str]) -> list[Event]:
    """The last resort: a file that names no group at all is called after one."""
    group = group_in_name(name, known)
    if group is None:
        return list(events)
    told = {"group_from": f"the name of {name}"}
    return [
        event
        if event.group is not None or is_of_server(event)
        else replace(event, group=group, details={**event.details, **told})
        for event in events
    ]


def group_in_name(name: str, known: Mapping[str, str]) -> str | None:
    """A known group that the name contains as a whole word, the longest; else what follows "client-"."""
    base = name.rpartition("/")[2]
    inside = [group for group in known if group and _contains(base, group)]
    if inside:
        return max(inside, key=len)
    match = _NAME_OF_CLIENT.match(_ENDINGS.sub("", base))
    return match["group"] if match is not None else None


def _contains(text: str, word: str) -> bool:
    place = text.find(word)
    while place >= 0:
        before, after = text[:place][-1:], text[place + len(word) :][:1]
        if not before.isalnum() and not after.isalnum():
            return True
        place = text.find(word, place + 1)
    return False
