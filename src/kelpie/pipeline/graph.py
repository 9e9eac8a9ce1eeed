"""The job graph: each table that follows from others, what from, and how. Batch and stream run the same.

A function takes DataFrames in the order of `inputs` and returns the rows of its table. Tables that come of
evidence itself (bronze) and of the doctor (findings, outages) are not in here: see `intake` and `run`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame

from kelpie.pipeline.tables import TABLES, Table
from kelpie.pipeline.transforms.commits import timeline
from kelpie.pipeline.transforms.ends import ends
from kelpie.pipeline.transforms.generations import generations, memberships
from kelpie.pipeline.transforms.lag import lags, told
from kelpie.pipeline.transforms.losses import losses
from kelpie.pipeline.transforms.positions import regressions, traffic
from kelpie.pipeline.transforms.rebalances import rebalances


@dataclass(frozen=True, slots=True)
class Job:
    """One table, made of others."""

    name: str
    inputs: tuple[str, ...]
    function: Callable[..., DataFrame]

    @property
    def table(self) -> Table:
        return TABLES[self.name]


def _lag(timeline: DataFrame, snapshot: DataFrame) -> DataFrame:
    return lags(timeline, ends(snapshot), told=told(snapshot))


JOBS = (
    Job("commit_timeline", ("offset_commit", "transaction_marker"), timeline),
    Job("group_generation", ("group_metadata", "offset_commit", "cluster_snapshot"), generations),
    Job("membership_interval", ("group_generation", "log_event"), memberships),
    Job("rebalance", ("group_generation", "log_event"), rebalances),
    Job("lag", ("commit_timeline", "cluster_snapshot"), _lag),
    Job("offset_regression", ("commit_timeline",), regressions),
    Job("offset_loss", ("commit_timeline", "group_generation", "cluster_snapshot", "log_event"), losses),
    Job("traffic", ("commit_timeline",), traffic),
)


def waves(jobs: Iterable[Job] = JOBS) -> Iterator[list[Job]]:
    """Jobs that do not need each other, after those that they need. Raises ValueError for a circle."""
    waiting = {job.name: job for job in jobs}
    while waiting:
        ready = [job for job in waiting.values() if not any(name in waiting for name in job.inputs)]
        if not ready:
            raise ValueError(f"These tables wait for each other: {', '.join(waiting)}.")
        for job in ready:
            del waiting[job.name]
        yield ready
