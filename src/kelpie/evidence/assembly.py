"""Putting evidence together: the doctor does it for files, the pipeline for each batch of them.

An output of a tool seldom says when it was made. Logs and records of the offsets topic date it, so they are
read first; then `add_outputs` dates all outputs of one batch and joins what several say of the same group.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kelpie.evidence import properties
from kelpie.evidence.dating import Dated, date_outputs, in_order, stamped
from kelpie.evidence.files import EvidenceFile
from kelpie.evidence.logs import LogReading
from kelpie.model.time import Instant
from kelpie.observations import GroupState, Observations

_META = "meta.properties"
_SAME_TIME_MS = 300_000
_UNDATED = -(10**15)
"""Far from all times."""


class BrokerProperties:
    """Properties files: settings of brokers, and of consumers of 0.8's kind; whose disk it is."""

    def __init__(self) -> None:
        self.settings = Observations()
        self.disks: dict[str, int] = {}
        """Folder of a disk → node id."""
        self.clusters: dict[str, str] = {}
        """Cluster ids of the disks, each with the file that has it."""

    def add(self, file: EvidenceFile, lines: Iterable[str]) -> None:
        lines = list(lines)
        values = properties.read_properties(lines)
        if properties.looks_like_consumer(lines):
            member = properties.zookeeper_member(values)
            self.settings.settings += properties.settings_of_zookeeper_consumer(values, member, file.name)
            return
        node = properties.node_id(values)
        if file.base != _META and "cluster.id" not in values:
            self.settings.add(properties.observe(values, file.name))
            return
        if node is not None:
            self.disks[file.folder] = node
        if "cluster.id" in values:
            self.clusters.setdefault(values["cluster.id"], file.name)


def add_outputs(
    observations: Observations,
    outputs: Sequence[Dated],
    logs: Sequence[LogReading],
    modified: Mapping[str, Instant | None],
    history: Observations,
) -> None:
    """Adds what outputs of tools show, with their times where these can be known.

    `modified`: when files were last written. `history`: leaders in logs, and records of the groups shown.
    """
    date_outputs(outputs, logs, modified, history)
    _join_states(outputs)
    for dated in in_order(outputs):
        observations.add(stamped(dated.output.observations, dated.at))


def _join_states(outputs: Iterable[Dated]) -> None:
    """States and members of a group are described by two commands, in two files: together they are one row.

    It stays in the output that says most.
    """
    rows: dict[tuple[object, str], list[tuple[Dated, GroupState]]] = {}
    for dated in outputs:
        for state in dated.output.observations.states:
            rows.setdefault((dated.batch, state.group), []).append((dated, state))
    for dated in outputs:
        dated.output.observations.states = []
    for same in rows.values():
        for dated, joined in _joined_by_time(same):
            dated.output.observations.states.append(joined)


def _joined_by_time(same: list[tuple[Dated, GroupState]]) -> Iterator[tuple[Dated, GroupState]]:
    """The rows of one group, by and by: the row that says most of those left, joined with those near it."""
    times = [_UNDATED if dated.at is None else dated.at for dated, _ in same]
    in_time = sorted(range(len(same)), key=times.__getitem__)
    sorted_times = sorted(times)
    left = set(in_time)
    for best in sorted(left, key=lambda index: (same[index][1].coordinator < 0, not same[index][1].members)):
        if best not in left:
            continue
        begin = bisect_left(sorted_times, times[best] - _SAME_TIME_MS)
        end = bisect_right(sorted_times, times[best] + _SAME_TIME_MS)
        dated, joined = same[best]
        for index in sorted(left.intersection(in_time[begin:end])):
            joined = _joined(joined, same[index][1])
            left.remove(index)
        yield dated, joined


def _joined(best: GroupState, other: GroupState) -> GroupState:
    return best._replace(
        state=best.state or other.state,
        kind=other.kind if other.members and not best.members else best.kind,
        protocol=best.protocol or other.protocol,
        epoch=max(best.epoch, other.epoch),
        members=best.members or other.members,
        coordinator=max(best.coordinator, other.coordinator),
    )
