"""The job graph: which tables are made of which, and by which function. Batch and stream run the same graph.

A job makes one table by a function from DataFrames to a DataFrame, or several tables that come of one pass
over the same rows. Bronze tables are no jobs: `intake` fills them from evidence. A job with a follower makes
its tables in rounds (`rounds`): what is new, and not all of it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame

from kelpie.pipeline.diagnosis.coordinators import coordinator_tables
from kelpie.pipeline.diagnosis.groups import diagnosis_tables
from kelpie.pipeline.diagnosis.scraped import known_mappings
from kelpie.pipeline.group_history import lag_tables, membership_tables, rebalance_tables, zookeeper_tables
from kelpie.pipeline.rounds.commit_rounds import CommitRounds
from kelpie.pipeline.rounds.following import Follower
from kelpie.pipeline.rounds.regression_rounds import RegressionRounds
from kelpie.pipeline.rounds.traffic_rounds import TrafficRounds
from kelpie.pipeline.storage.frames import ClusterTables, Rows
from kelpie.pipeline.traffic.days import TrafficDays
from kelpie.pipeline.traffic.derived_days import DerivedDays
from kelpie.pipeline.transforms.generations import generations
from kelpie.pipeline.transforms.losses import losses


@dataclass(frozen=True, slots=True)
class Job:
    """Makes tables of the rows of others."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    make: Callable[[ClusterTables], Iterable[tuple[str, Rows]]]
    """Yields each output and its rows. What it reads must be among `inputs`. An output that it does not yield
    is one that it keeps up to date itself, part by part.
    """
    stage: str = "tables"
    """The stage of a run that its time counts for."""
    follower: Follower | None = None
    """Makes the outputs instead, in rounds, if it is given."""

    @property
    def name(self) -> str:
        return self.outputs[0]


def _one_table(name: str, inputs: tuple[str, ...], function: Callable[..., DataFrame]) -> Job:
    """`function` takes the frames of the inputs, in their order. All its rows come of rows of the first one:
    where that is empty, Spark plans nothing.
    """

    def make(tables: ClusterTables) -> Iterable[tuple[str, Rows]]:
        return [(name, function(*map(tables.frame, inputs)) if tables.has_rows(inputs[0]) else ())]

    return Job((name,), inputs, make)


def _in_rounds(follower: Follower) -> Job:
    return Job(follower.outputs, follower.inputs, lambda _: (), follower=follower)


def _traffic_by_group(tables: ClusterTables) -> Iterable[tuple[str, Rows]]:
    TrafficDays(tables, lambda: known_mappings(tables.lake, tables.cluster)).make()
    DerivedDays(tables).make()
    return ()


_SEEN = ("cluster_snapshot", "log_event")

JOBS = (
    _in_rounds(CommitRounds()),
    _one_table("group_generation", ("group_metadata", "offset_commit", "cluster_snapshot"), generations),
    Job(("ownership_interval", "rebalance_attempt"), ("log_event", "cluster_snapshot"), zookeeper_tables),
    Job(
        ("membership_interval",),
        ("group_generation", "log_event", "cluster_snapshot", "ownership_interval"),
        membership_tables,
    ),
    Job(
        ("rebalance",),
        ("group_generation", "log_event", "membership_interval", "rebalance_attempt"),
        rebalance_tables,
    ),
    Job(("lag",), ("commit_timeline", "cluster_snapshot"), lag_tables),
    _in_rounds(RegressionRounds()),
    _one_table(
        "offset_loss", ("commit_timeline", "group_generation", "cluster_snapshot", "log_event"), losses
    ),
    _in_rounds(TrafficRounds()),
    Job(
        ("findings", "open_question", "group_health"),
        (
            "evidence_file",
            "offset_commit",
            "transaction_marker",
            "group_metadata",
            "log_event",
            "cluster_snapshot",
            "quarantine",
            "group_generation",
            "rebalance",
            "commit_timeline",
            "lag",
        ),
        diagnosis_tables,
        stage="diagnosis",
    ),
    Job(
        (
            "attributed_traffic",
            "attribution_gap",
            "traffic_closing",
            "traffic_opening",
            "unattributed_traffic",
            "offset_closing",
        ),
        (
            "traffic_sample",
            "offset_sample",
            "group_generation",
            "commit_timeline",
            "cluster_snapshot",
            "log_event",
        ),
        _traffic_by_group,
    ),
    Job(
        ("coordinator_timeline", "coordinator_outage"),
        ("cluster_snapshot", "log_event", "quarantine", "group_health"),
        coordinator_tables,
        stage="diagnosis",
    ),
)


def waves(jobs: Iterable[Job] = JOBS) -> Iterator[list[Job]]:
    """Lists of jobs that do not need each other, each list after those that it needs.

    Raises ValueError for a circle.
    """
    waiting = {name: job for job in jobs for name in job.outputs}
    while waiting:
        ready = [job for job in waiting.values() if not any(name in waiting for name in job.inputs)]
        if not ready:
            raise ValueError(f"These tables wait for each other: {', '.join(waiting)}.")
        wave = list(dict.fromkeys(ready))
        for job in wave:
            for name in job.outputs:
                del waiting[name]
        yield wave
