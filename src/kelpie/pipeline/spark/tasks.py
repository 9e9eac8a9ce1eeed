"""Plain tasks: a function for each input, on Spark's executors, or in this process for little input.

Theory: a Python process of Spark's imports Arrow, numba and Kelpie before its first task, and there is one
for each core. For a few megabytes that takes longer than the tasks. So on one machine the driver does them,
one after the other. Both ways call the same functions, and the results are the same.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from kelpie.pipeline.spark.cluster import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext

SMALL_BYTES = 16 << 20
"""Of files that tasks read: the driver reads so many in the time in which processes start."""

Input = TypeVar("Input")
Result = TypeVar("Result")


def run_tasks(
    context: "SparkContext",
    task: Callable[[Input], Result],
    inputs: Sequence[Input],
    *,
    size: int,
    slices: int | None = None,
) -> list[Result]:
    """The result of the task for each input, in order. `size`: bytes that tasks read, all together.

    `slices`: at most so many tasks of Spark, each for several inputs; None: one for each input.
    """
    if not inputs:
        return []
    if is_done_here(context, size):
        return [task(each) for each in inputs]
    return context.parallelize(inputs, min(len(inputs), slices or len(inputs))).map(task).collect()


def is_done_here(context: "SparkContext", size: int) -> bool:
    """Whether the driver itself reads so many bytes."""
    return size <= SMALL_BYTES and is_local(context.master)
