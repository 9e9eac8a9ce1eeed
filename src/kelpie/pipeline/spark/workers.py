"""Python processes that run tasks.

PySpark collects all garbage after every task. With numba, pandas and Arrow imported, such a collection looks
at half a million objects and takes longer than a small task: 0.045 s, where reading some lines of a log takes
0.004 s.
"""

import functools
import gc
import sys

_WORKER = "pyspark.worker"
"""The module that Python processes of Spark's run, and the driver does not."""


def spare_modules() -> None:
    """Takes what the imported modules consist of out of the collections to come. To be called by tasks.

    The driver, which also calls them (`tasks`), has more than modules, and nobody collects after each task.
    """
    if _WORKER in sys.modules:
        _freeze(len(sys.modules))


@functools.cache
def _freeze(modules: int) -> None:
    """Once for each number of modules: a later task may import more."""
    del modules
    gc.freeze()
