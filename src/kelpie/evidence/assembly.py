"""Putting evidence together: the doctor does it for files, the pipeline for each batch of them.

An output of a tool seldom says when it was made. Logs and records of the offsets topic date it, so they are
read first; then `add_outputs` dates all outputs of one batch and joins what several say of the same group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kelpie.evidence import properties
from kelpie.evidence.dating import Dated, date_outputs, in_order, stamped
from kelpie.evidence.files import EvidenceFile
from kelpie.evidence.logs import LogReading
from kelpie.model.time import Instant
from kelpie.observations import GroupState, Observations

_META = "meta.properties"
_SAME_TIME_MS = 300_000


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
    for same in rows.values():
        while same:
            first = max(same, key=lambda pair: (pair[1].coordinator >= 0, bool(pair[1].members)))
            together = [pair for pair in same if _near(pair[0], first[0])]
            same[:] = [pair for pair in same if pair not in together]
            for dated, state in together:
                dated.output.observations.states.remove(state)
            joined = first[1]
            for _, state in together:
                joined = _joined(joined, state)
            first[0].output.observations.states.append(joined)


def _near(one: Dated, other: Dated) -> bool:
    if one.at is None or other.at is None:
        return one.at is other.at
    return abs(one.at - other.at) <= _SAME_TIME_MS


def _joined(best: GroupState, other: GroupState) -> GroupState:
    return replace(
        best,
        state=best.state or other.state,
        kind=other.kind if other.members and not best.members else best.kind,
        protocol=best.protocol or other.protocol,
        epoch=max(best.epoch, other.epoch),
        members=best.members or other.members,
        coordinator=max(best.coordinator, other.coordinator),
    )
