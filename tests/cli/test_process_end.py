"""Commands that hold much end without freeing it; all else that belongs to an end is done."""

import subprocess
import sys

from kelpie.cli import process_end

_BEFORE = """
import atexit, threading
from kelpie.cli import process_end

class Large:
    def __del__(self):
        print("freed")

def command():
    large = Large()
    process_end.leave_to_the_kernel(large)
    atexit.register(print, "registered")
    threading.Thread(target=lambda: (ending.wait(), print("thread"))).start()
    print("said")
    return 2

ending = threading.Event()
threading._register_atexit(ending.set)
process_end.main = command
"""


def _ended(program: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + program], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, [*done.stdout.split(), *done.stderr.split()]


def test_what_is_left_to_the_kernel_is_not_freed() -> None:
    """Threads end and registered functions are called, as in any process; the status is the command's."""
    assert _ended("process_end.run()") == (2, ["said", "thread", "registered"])


def test_a_process_in_which_somebody_has_registered_ends_as_usual() -> None:
    """A measurement of coverage is written at the end, by a function that was registered first."""
    program = "atexit.register(print, 'coverage'); process_end.run()"
    assert _ended(program) == (2, ["said", "freed", "thread", "registered", "coverage"])


def test_a_command_that_fails_ends_as_usual() -> None:
    """Its traceback is shown, and the status is Python's."""
    status, said = _ended(
        "def fails():\n    command()\n    raise ValueError('defect')\n"
        "process_end.main = fails\nprocess_end.run()"
    )
    assert (status, said[:1], said[-2:]) == (1, ["said"], ["ValueError:", "defect"])
    assert "freed" in said


def test_a_program_that_calls_main_keeps_nothing() -> None:
    """It may run for days, and call thousands of commands."""
    process_end.leave_to_the_kernel(object())
    assert process_end._end.held == []
