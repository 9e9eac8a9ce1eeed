"""Small files of tables to which each round, or each run, adds some: they are put together now and then."""

from kelpie.pipeline.graph import JOBS
from kelpie.pipeline.storage.lake import Lake
from kelpie.pipeline.tables import BRONZE, STORED

_MOST_FILES = 64
_FOLLOWERS = [job.follower for job in JOBS if job.follower is not None]
_GROWING = [*BRONZE, *(STORED[name] for each in _FOLLOWERS for name in (*each.outputs, *each.state))]


def merge_small_files(lake: Lake, cluster: str) -> None:
    """Of tables that have too many of them."""
    for table in _GROWING:
        if lake.fragments(table, cluster) > _MOST_FILES:
            lake.compact(table, cluster)
