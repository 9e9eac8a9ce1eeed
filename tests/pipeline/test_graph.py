"""The job graph."""

import pytest

from kelpie.pipeline.graph import JOBS, Job, waves
from kelpie.pipeline.tables import TABLES


def test_every_job_comes_after_what_it_needs() -> None:
    """Whatever the order in which they are declared."""
    made: set[str] = set()
    own = {name for job in JOBS for name in job.outputs}
    for wave in waves(reversed(JOBS)):
        for job in wave:
            assert {name for name in job.inputs if name in own} <= made
            assert {*job.outputs, *job.inputs} <= TABLES.keys()
        made |= {name for job in wave for name in job.outputs}
    assert made == own == {name for name, table in TABLES.items() if table.layer != "bronze"}


def test_tables_that_wait_for_each_other_are_refused() -> None:
    """A circle would never end."""
    with pytest.raises(ValueError, match="wait for each other: a, b"):
        list(waves([Job(("a",), ("b",), lambda _: []), Job(("b",), ("a",), lambda _: [])]))
