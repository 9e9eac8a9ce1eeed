"""Putting evidence together: the doctor does it for files, the pipeline for each batch of them.

An output of a tool seldom says when it was made. Logs and records of the offsets topic date it, so they are
read first; then `add_outputs` dates all outputs of one batch and joins what several say of the same group.
"""

from collections.abc import Iterable, Mapping, Sequence

from kelpie.evidence import properties
from kelpie.evidence.dating import Dated, date_outputs, in_order, stamped
from kelpie.evidence.files import EvidenceFile
from kelpie.evidence.joining import join_states
from kelpie.evidence.logs import LogReading
from kelpie.model.time import Instant
from kelpie.observations import Observations

_META = "meta.properties"


class BrokerProperties:
    """Properties files of brokers: settings, and which broker a disk belongs to."""

    def __init__(self) -> None:
        self.settings = Observations()
        self.disks: dict[str, int] = {}
        """Folder of a disk → node id."""
        self.clusters: dict[str, str] = {}
        """Cluster ids of the disks, each with the file that has it."""

    def add(self, file: EvidenceFile, lines: Iterable[str]) -> None:
        values = properties.read_properties(lines)
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
    join_states(outputs)
    for dated in in_order(outputs):
        observations.add(stamped(dated.output.found, dated.at))
