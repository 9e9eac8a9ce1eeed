"""Silver and gold: runs the jobs of the graph whose inputs have changed. Batch and stream both end here.

A table's log keeps a number for the input rows that its rows were made of (`number_of`), as a transaction
id of Delta in the commit that replaced the rows: rows and number cannot differ. A run that was killed leaves
some tables with the new number and some with the old one; the next run makes only the latter.

Tables of jobs with a follower are not made anew: `rounds` says how they follow.
"""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from kelpie.pipeline.code_version import code_version
from kelpie.pipeline.graph import JOBS, Job, waves
from kelpie.pipeline.rounds.following import Work, do, due
from kelpie.pipeline.storage.frames import ClusterTables
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.summary import Announce, Summary
from kelpie.pipeline.tables import TABLES

_PARALLEL_JOBS = 3
"""While Spark plans one job, another has tasks to run."""


def make_derived(
    tables: ClusterTables,
    summary: Summary,
    announce: Announce = lambda _: None,
    *,
    jobs: Iterable[Job] = JOBS,
) -> bool:
    """Makes the tables of these jobs that are not up to date. Returns whether there were any."""
    lake, cluster = tables.lake, tables.cluster
    any_due = False

    def run(job: Job, made_of: int | Work) -> None:
        if isinstance(made_of, Work):
            assert job.follower is not None
            do(tables, job.follower, made_of)
            return
        made_in_parts = set(job.outputs)
        for name, rows in job.make(tables):
            summary.tables[name] = tables.replace(name, rows, made_of=made_of)
            made_in_parts.discard(name)
        for name in made_in_parts:  # The job has replaced what had to be replaced.
            lake.mark(TABLES[name], cluster, made_of=made_of)

    with ThreadPoolExecutor(_PARALLEL_JOBS) as pool:
        for wave in waves(jobs):
            # The number is taken before the rows are read: rows that come meanwhile make the table due again.
            work = [(job, number) for job in wave if (number := _due(tables, job)) is not None]
            if work:
                any_due = True
                names = ", ".join(job.name for job, _ in work)
                with summary.stage(work[0][0].stage, announce, names):
                    list(pool.map(lambda each: run(*each), work))
    summary.findings = lake.tally(TABLES["findings"], cluster, "severity")
    summary.tables = {name: lake.count(table, cluster) for name, table in TABLES.items()}
    return any_due


def _due(tables: ClusterTables, job: Job) -> int | Work | None:
    """The number of the job's inputs, or the round to do; None if all its outputs were made of these."""
    if job.follower is not None:
        return due(tables, job.follower)
    number = number_of(tables.lake, tables.cluster, job.inputs)
    made_of = {tables.lake.made_of(TABLES[name], tables.cluster) for name in job.outputs}
    return None if made_of == {number} else number


def number_of(lake: Lake, cluster: str, inputs: Sequence[str]) -> int:
    """The number of a cluster's rows in these tables now. Other code has other numbers.

    Files of a table never change, and each has a unique name, so their names stand for the rows.
    """
    digest = hashlib.sha256(code_version())
    for name in inputs:
        digest.update(b"\0\0" + name.encode())
        for path in sorted(lake.files(TABLES[name], cluster)):
            digest.update(b"\0" + path.name.encode())
    return int.from_bytes(digest.digest()[:8], "big") >> 1
