"""The garbage collector waits while rows are made, and does not look through them afterwards."""

import gc
import subprocess
import sys
from threading import Thread

from kelpie.client.garbage import few_collections

PROGRAM = """
import gc
from kelpie.client.garbage import few_collections

class Cycle:
    def __init__(self):
        self.itself = self

gc.collect()
with few_collections():
    rows = [[number] for number in range(100_000)]
young = {id(each) for generation in (0, 1) for each in gc.get_objects(generation)}
print("old" if id(rows[0]) not in young and any(each is rows for each in gc.get_objects(2)) else "young")
Cycle()
for _ in range(100):
    with few_collections():
        pass
print(sum(isinstance(each, Cycle) for each in gc.get_objects()))
"""


def test_what_was_made_counts_as_old_and_cycles_are_collected_now_and_then() -> None:
    """A look at 10,000 groups would end with a tenth of its time spent on objects that all stay."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["old", "0"]


FREEZING = """
import gc
from kelpie.client.garbage import few_collections

gc.freeze()
for _ in range(3):
    with few_collections():
        pass
print(gc.get_freeze_count() > 0)
"""


def test_what_somebody_has_frozen_stays_so() -> None:
    """A server that froze its start would else have it looked through again."""
    done = subprocess.run(
        [sys.executable, "-c", FREEZING], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["True"]


def test_the_last_of_several_threads_restores_the_usual_threshold() -> None:
    """One that began later must not leave the collector off for good."""
    usual = gc.get_threshold()
    later = few_collections()

    with few_collections():
        thread = Thread(target=later.__enter__)
        thread.start()
        thread.join()
    assert gc.get_threshold() != usual, "the other one is still under way"
    later.__exit__(None, None, None)
    assert gc.get_threshold() == usual
