"""The job graph."""

import pytest
from pyspark.sql import DataFrame

from kelpie.pipeline.graph import JOBS, Job, waves
from kelpie.pipeline.tables import TABLES


def test_every_job_comes_after_what_it_needs() -> None:
    """Whatever the order in which they are declared."""
    made: set[str] = set()
    own = {job.name for job in JOBS}
    for wave in waves(reversed(JOBS)):
        for job in wave:
            assert {name for name in job.inputs if name in own} <= made
            assert {job.name, *job.inputs} <= TABLES.keys()
        made |= {job.name for job in wave}
    assert made == own


def _unused() -> DataFrame:
    raise AssertionError("no table of a circle is made")


def test_tables_that_wait_for_each_other_are_refused() -> None:
    """A circle would never end."""
    with pytest.raises(ValueError, match="wait for each other: a, b"):
        list(waves([Job("a", ("b",), _unused), Job("b", ("a",), _unused)]))
