"""Tables of kafka-consumer-groups, kafka-share-groups, kafka-streams-groups and kafka-groups.

A line of headings, then rows until an empty line:

0.8, 0.9     kafka.tools.ConsumerOffsetChecker, for groups of ZooKeeper: Group Topic Pid Offset logSize Lag
             Owner
0.9          comma and space between columns: GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG,
             OWNER
0.10         columns padded with spaces; up to 2.3 without GROUP where one group was asked for
1.1          --members, --state
2.4          --all-groups: a table per group, each with GROUP; GROUP-INSTANCE-ID for static members
4.x          epochs and target assignments of KIP-848 groups; --list --state and --type have headings; share
             groups have START-OFFSET, Streams groups MEMBER, PROCESS, OFFSET-LAG and, instead of partitions,
             tasks ("ACTIVE: 0:[0,1];")

States of share and Streams groups look alike, without a strategy: the command or the name of the file tells
which they are, else they count as share groups, of which least is concluded.

"-" (0.9: "unknown") is none. The position of its column shows where a name with spaces begins.
"""

import re
from dataclasses import replace
from typing import Any

from kelpie.evidence.describes.output import Context
from kelpie.model.names import TopicPartition
from kelpie.observations import Committed, GroupState, Listing, LogEnds, Member
from kelpie.observations.groups import CLASSIC, CONSUMER, SHARE, STREAMS, UNTOLD, SharePosition
from kelpie.observations.positions import NO_OFFSET
from kelpie.observations.zookeeper_groups import StoredOffset

_HEADING = re.compile(
    r"GROUP|TOPIC|PARTITION|LEADER-EPOCH|CURRENT-OFFSET|LOG-END-OFFSET|LAG|OWNER|CONSUMER-ID|HOST|CLIENT-ID"
    r"|GROUP-INSTANCE-ID|#PARTITIONS|ASSIGNMENT|(?:CURRENT|TARGET)-(?:EPOCH|ASSIGNMENT)|UPGRADED"
    r"|START-OFFSET|OFFSET-LAG|MEMBER|MEMBER-EPOCH|MEMBER-PROTOCOL|PROCESS|ASSIGNMENTS|TOPOLOGY-EPOCH"
    r"|ASSIGNMENT-EPOCH|COORDINATOR-\(ID\)|ASSIGNMENT-STRATEGY|STATE|GROUP-EPOCH|TARGET-ASSIGNMENT-EPOCH|#MEMBERS|TYPE|PROTOCOL"
)
_CHECKER = ["GROUP", "TOPIC", "PID", "OFFSET", "LOGSIZE", "LAG", "OWNER"]
_NONE = ("-", "unknown", "")
_COORDINATOR = re.compile(r"(?<!\S)(\S+):(\d{1,5})\s+\((-?\d{1,10})\)")
_ASSIGNED = re.compile(r"(?<![a-zA-Z0-9._-])([a-zA-Z0-9._-]+)[(:](\d{1,9}(?:,\d{1,9})*)")
_LONGEST_ROW = 4096
_WORDS = re.compile(r"\S+")


def is_header(line: str) -> bool:
    if not line.lstrip().startswith(("GROUP", "TOPIC", "CONSUMER-ID", "COORDINATOR", "Group ")):
        return False
    return _kind(_headings(line)) is not None


def _headings(line: str) -> list[str]:
    text = line.strip().replace("COORDINATOR (ID)", "COORDINATOR-(ID)")
    if ", " in text:
        return [heading.strip().replace(" ", "-") for heading in text.split(",")]
    return _WORDS.findall(text)


def _kind(headings: list[str]) -> str | None:
    if [heading.upper() for heading in headings] == _CHECKER:
        return "checked"
    if not headings or not all(map(_HEADING.fullmatch, headings)):
        return None
    if "START-OFFSET" in headings:
        return "shares"
    if "CURRENT-OFFSET" in headings:
        return "offsets"
    if "OFFSET-LAG" in headings:
        return "lags"
    if "PROCESS" in headings:
        return "tasks"
    if "#PARTITIONS" in headings or ("CONSUMER-ID" in headings and "ASSIGNMENT" in headings):
        return "members"
    if "#MEMBERS" in headings and "COORDINATOR-(ID)" in headings:
        return "states"
    return "list" if headings[0] == "GROUP" and len(headings) > 1 else None


class ToolTable:
    """One table. Rows go to the context as they come."""

    def __init__(self, header: str, context: Context, number: int) -> None:
        self._context = context
        self._number = number
        self._headings = [heading.upper() for heading in _headings(header)]
        self._kind = _kind(self._headings)
        self._commas = ", " in header
        aligned = header.replace("COORDINATOR (ID)", "COORDINATOR-(ID)")
        self._starts = [match.start() for match in _WORDS.finditer(aligned)]
        if self._kind == "list":
            context.observations.listings.append(Listing(None, (), source=context.source(number)))

    def row(self, line: str, number: int) -> bool:
        """Reads one row. False: the line is no row."""
        values = self._values(line) if len(line) <= _LONGEST_ROW else {}
        group = values.get("GROUP", self._context.group_or_name or "") if values else ""
        if not group:
            return False
        try:
            match self._kind:
                case "offsets":
                    self._offsets(group, values, number)
                case "members":
                    self._member(group, values, number)
                case "states":
                    self._state(group, values, number)
                case "list":
                    self._listed(group, values, number)
                case "shares":
                    self._share(group, values, number)
                case "tasks":
                    self._tasks(group, values, number)
                case "lags":
                    self._put(group, number, kind=STREAMS)
                case "checked":
                    return self._checked(group, values, number)
        except (KeyError, ValueError):
            return False
        self._context.know(group, number)
        return True

    def _values(self, line: str) -> dict[str, str]:
        if self._commas:
            cells = [cell.strip() for cell in line.split(", ")]
            return dict(zip(self._headings, cells, strict=False)) if len(cells) >= 4 else {}
        coordinator = _COORDINATOR.search(line) if self._kind == "states" else None
        if coordinator is not None:
            return self._with_coordinator(line, coordinator)
        cells = line.split()
        if len(cells) == len(self._headings):
            return dict(zip(self._headings, cells, strict=True))
        if len(cells) > len(self._headings) and self._headings[-1] in ("ASSIGNMENT", "ASSIGNMENTS"):
            last = len(self._headings) - 1  # Up to 3.x: "orders(0,1), payments(2)".
            return dict(zip(self._headings, [*cells[:last], " ".join(cells[last:])], strict=True))
        return self._by_position(line)

    def _with_coordinator(self, line: str, coordinator: re.Match[str]) -> dict[str, str]:
        """Its cell has a space in it, and the strategy of an empty group may be blank."""
        place = self._headings.index("COORDINATOR-(ID)")
        before, after = line[: coordinator.start()].strip(), line[coordinator.end() :].split()
        headings = self._headings[place + 1 :]
        if len(after) == len(headings) - 1 and "ASSIGNMENT-STRATEGY" in headings:
            after.insert(headings.index("ASSIGNMENT-STRATEGY"), "-")
        values = dict(zip(headings, after, strict=False))
        values["COORDINATOR-(ID)"] = coordinator[3]
        if place:
            values["GROUP"] = before
        return values

    def _by_position(self, line: str) -> dict[str, str]:
        starts = self._starts
        if len(line) <= starts[-1] or any(start and line[start - 1] != " " for start in starts):
            return {}
        ends = [*starts[1:], len(line)]
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        return dict(zip(self._headings, cells, strict=True))

    def _offsets(self, group: str, values: dict[str, str], number: int) -> None:
        if values["TOPIC"] in _NONE:
            return  # A member without partitions.
        if "OFFSET-LAG" in values:
            self._put(group, number, kind=STREAMS)
        observations, source = self._context.observations, self._context.source(number)
        topic, partition = values["TOPIC"], int(values["PARTITION"])
        epoch = values.get("LEADER-EPOCH", "-")
        observations.committed.append(
            Committed(
                group,
                topic,
                partition,
                _offset(values["CURRENT-OFFSET"]),
                leader_epoch=int(epoch) if epoch.isdecimal() else -1,
                source=source,
            )
        )
        end = _offset(values["LOG-END-OFFSET"])
        if end != NO_OFFSET:
            observations.ends.append(LogEnds(topic, partition, latest=end, source=source))

    def _checked(self, group: str, values: dict[str, str], number: int) -> bool:
        """A group of ZooKeeper: Kafka does not know it."""
        topic, partition = values["TOPIC"], int(values["PID"])
        offset, end = _offset(values["OFFSET"]), _offset(values["LOGSIZE"])
        if offset >= 0:
            self._context.stored_offsets.setdefault((group, self._number), []).append(
                StoredOffset(topic, partition, offset)
            )
        if end >= 0:
            ends = LogEnds(topic, partition, latest=end, source=self._context.source(number))
            self._context.observations.ends.append(ends)
        return True

    def _share(self, group: str, values: dict[str, str], number: int) -> None:
        position = SharePosition(
            values["TOPIC"],
            int(values["PARTITION"]),
            _offset(values["START-OFFSET"]),
            _offset(values.get("LAG", "-")),
            _offset(values.get("LEADER-EPOCH", "-")),
        )
        state = self._put(group, number, kind=SHARE)
        others = (row for row in state.share_positions if row.name != position.name)
        self._put(group, number, share_positions=(*others, position))

    def _tasks(self, group: str, values: dict[str, str], number: int) -> None:
        """Which topics a task reads is not told."""
        epoch = values.get("MEMBER-EPOCH", "-")
        member = Member(values["MEMBER"], values["CLIENT-ID"], epoch=int(epoch) if epoch.isdecimal() else -1)
        state = self._put(group, number, kind=STREAMS)
        self._put(group, number, state=_live(state), members=_with_member(state, member))

    def _member(self, group: str, values: dict[str, str], number: int) -> None:
        epoch = values.get("CURRENT-EPOCH", values.get("MEMBER-EPOCH", "-"))
        assignment = values.get("CURRENT-ASSIGNMENT", values.get("ASSIGNMENT"))
        assigned = _assigned(assignment) if assignment is not None else None
        if assigned is None and int(values["#PARTITIONS"]) == 0:
            assigned = ()
        instance = values.get("GROUP-INSTANCE-ID", "-")
        member = Member(
            values["CONSUMER-ID"],
            values["CLIENT-ID"],
            values["HOST"],
            None if instance in _NONE else instance,
            assigned=assigned,
            epoch=int(epoch) if epoch.isdecimal() else -1,
        )
        state = self._of(group, number)
        kind = CONSUMER if epoch.isdecimal() else state.kind
        if "#PARTITIONS" not in values or "MEMBER-EPOCH" in values or ":" in values.get("ASSIGNMENT", ""):
            kind = SHARE  # Up to 3.x, consumer groups write "orders(0,1)".
        self._put(group, number, state=_live(state), kind=kind, members=_with_member(state, member))

    def _state(self, group: str, values: dict[str, str], number: int) -> None:
        strategy = values.get("ASSIGNMENT-STRATEGY", "-")
        epoch = values.get("GROUP-EPOCH", "-")
        kind = CONSUMER if strategy == "uniform" else self._of(group, number).kind  # Of KIP-848 only.
        if "ASSIGNMENT-STRATEGY" not in values:
            is_streams = "streams" in self._context.tool or "TARGET-ASSIGNMENT-EPOCH" in values
            kind = STREAMS if is_streams or kind == STREAMS else SHARE
        self._put(
            group,
            number,
            state=values["STATE"],
            kind=kind,
            protocol="" if strategy in _NONE else strategy,
            epoch=int(epoch) if epoch.isdecimal() else -1,
            coordinator=int(values["COORDINATOR-(ID)"]),
        )

    def _listed(self, group: str, values: dict[str, str], number: int) -> None:
        listings = self._context.observations.listings
        listings[-1] = replace(listings[-1], groups=(*listings[-1].groups, group))
        if "STATE" in values:
            kind = values.get("TYPE", self._context.tool or CLASSIC).lower()
            state = GroupState(group, values["STATE"], kind, source=self._context.source(number))
            self._context.states.setdefault(group, state)

    def _put(self, group: str, number: int, **changes: Any) -> GroupState:
        """What is known of a group, with these changes."""
        state = self._context.states[group] = self._of(group, number)._replace(**changes)
        return state

    def _of(self, group: str, number: int) -> GroupState:
        return self._context.states.get(group) or GroupState(
            group, UNTOLD, source=self._context.source(number)
        )


def _with_member(state: GroupState, member: Member) -> tuple[Member, ...]:
    """A transcript may show the same member several times: with --verbose, and without."""
    return (*(other for other in state.members if other.member_id != member.member_id), member)


def _live(state: GroupState) -> str:
    return "Stable" if state.state in ("", UNTOLD) else state.state


def _offset(text: str) -> int:
    return NO_OFFSET if text in _NONE else int(text)


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic, int(partition))
        for topic, partitions in _ASSIGNED.findall(text)
        for partition in partitions.split(",")
    )
