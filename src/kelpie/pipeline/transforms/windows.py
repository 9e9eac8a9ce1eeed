"""Frames of windows: what comes behind a row, without looking at all of it for each row."""

from pyspark.sql import Window, WindowSpec


def following(backwards: WindowSpec) -> WindowSpec:
    """All rows behind each row. `backwards`: a window that is ordered from the last row to the first.

    So the next value that there is, is the last one of the frame. Spark goes through a frame that ends with
    the last row anew for each row, which is quadratic; one that begins with the first row it goes through
    once.
    """
    return backwards.rowsBetween(Window.unboundedPreceding, -1)
