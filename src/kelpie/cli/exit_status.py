"""Exit status of all commands, in one place. docs/exit-codes.md is made of it.

1 to 3 answer the question that the command was asked: what each means there, the command's own help says.
From 64 on, a status means the same for every command; the numbers are those of sysexits.h and of shells.
"""

from enum import IntEnum


class ExitStatus(IntEnum):
    meaning: str

    def __new__(cls, value: int, meaning: str) -> "ExitStatus":
        status = int.__new__(cls, value)
        status._value_ = value
        status.meaning = meaning
        return status

    OK = 0, "done, and nothing is wrong"
    NO = 1, "the answer is no, or it failed; for the doctor: a warning"
    CRITICAL = 2, "the doctor found something critical"
    NOT_KNOWN = 3, "not all is known: somebody who was asked did not answer"
    USAGE = 64, "the command was not understood, or its options cannot be"
    CANNOT_WRITE = 74, "the output could not be written"
    CANNOT_RUN = 126, "the program to be run may not be run"
    NO_SUCH_PROGRAM = 127, "the program to be run is not there"
    INTERRUPTED = 130, "ended by Ctrl-C"
    PIPE_CLOSED = 141, "whoever read the output has gone away"
    TERMINATED = 143, "ended by SIGTERM"


OF_EVERY_COMMAND = (
    ExitStatus.USAGE,
    ExitStatus.CANNOT_WRITE,
    ExitStatus.INTERRUPTED,
    ExitStatus.PIPE_CLOSED,
)
