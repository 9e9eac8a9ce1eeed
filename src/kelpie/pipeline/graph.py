"""The job graph: which tables are made of which, and by which function. Batch and stream run the same graph.

A job makes one table by a function from DataFrames to a DataFrame, or several tables that come of one pass
over the same rows. Bronze tables are no jobs: `intake` fills them from evidence. A job with a follower makes
its tables in rounds (`rounds`): what is new, and not all of it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kelpie.pipeline.diagnosis.scraped import known_mappings
from kelpie.pipeline.rounds.commit_rounds import CommitRounds
from kelpie.pipeline.rounds.diagnosis_rounds import DiagnosisRounds
from kelpie.pipeline.rounds.following import Follower
from kelpie.pipeline.rounds.group_rounds import GroupRounds
from kelpie.pipeline.rounds.lag_rounds import LagRounds
from kelpie.pipeline.rounds.loss_rounds import LossRounds
from kelpie.pipeline.rounds.regression_rounds import RegressionRounds
from kelpie.pipeline.rounds.traffic_rounds import TrafficRounds
from kelpie.pipeline.storage.frames import ClusterTables, Rows
from kelpie.pipeline.traffic.days import TrafficDays
from kelpie.pipeline.traffic.derived_days import DerivedDays


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


def _in_rounds(follower: Follower, stage: str = "tables") -> Job:
    return Job(follower.outputs, follower.inputs, lambda _: (), stage, follower)


def _traffic_by_group(tables: ClusterTables) -> Iterable[tuple[str, Rows]]:
    TrafficDays(tables, lambda: known_mappings(tables.lake, tables.cluster)).make()
    DerivedDays(tables).make()
    return ()


JOBS = (
    _in_rounds(CommitRounds()),
    _in_rounds(GroupRounds()),
    _in_rounds(LagRounds()),
    _in_rounds(RegressionRounds()),
    _in_rounds(LossRounds()),
    _in_rounds(TrafficRounds()),
    _in_rounds(DiagnosisRounds(), stage="diagnosis"),
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
