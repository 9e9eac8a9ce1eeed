"""The command line: one file per command, each with `register(subparsers)` and a function that runs it.

A command returns its exit status. It raises `CommandError` for what a user can mend; any other exception is
a defect and keeps its traceback. Only the module of the given command is imported: all of them take a second.

What every command has in common is here: a name that is not UTF-8, an output that cannot be written and
Ctrl-C are told in one line, whenever they come.
"""

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from kelpie.cli.command import (
    CANNOT_WRITE,
    INTERRUPTED,
    PIPE_CLOSED,
    USAGE,
    CommandError,
    CommandParser,
    folded,
)
from kelpie.model.quoting import harmless

COMMANDS = (
    "doctor",
    "groups",
    "serve",
    "ack",
    "explain",
    "probe",
    "consume",
    "peek",
    "where",
    "names",
    "lab",
    "real",
    "rehome",
    "reset",
    "reassign-offsets-topic",
    "elect",
    "undo",
    "migrate-offsets",
    "guard",
    "mappings",
    "offsets",
    "collect",
    "pipeline",
    "simulate",
)
"""In the order in which help lists them. Each is a module of that name, with _ for -."""
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    command = words[0] if words and words[0] in COMMANDS else ""
    _show_what_cannot_be_encoded()
    try:
        try:
            return _run(words, command)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        _tell(command, "interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _tell(command, f"Writing failed: {error.strerror}.")
        _discard_output()
        return CANNOT_WRITE


def parser(command: str = "") -> CommandParser:
    """The parser of one command, or of all. It imports the modules of those that it knows."""
    whole = CommandParser(
        prog="kelpie", description="Finds out which Kafka consumer groups are not consuming, and why."
    )
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in [command] if command else COMMANDS:
        importlib.import_module(f"{__name__}.{name.replace('-', '_')}").register(commands)
    return whole


def _run(words: Sequence[str], command: str) -> int:
    unreadable = next((word for word in words if _is_not_text(word)), None)
    if unreadable is not None:
        _tell(
            command,
            f"'{harmless(unreadable)}' is not UTF-8, and names no file. Kafka keeps names as UTF-8; a group "
            "whose client sent other bytes is listed with U+FFFD in their place. Give the name as kelpie "
            "doctor shows it.",
        )
        return USAGE
    arguments = parser(command).parse_args(words)
    try:
        if complete := getattr(arguments, "complete", None):
            complete(arguments)
        status: int = arguments.run(arguments)
    except CommandError as error:
        print(f"kelpie {arguments.command}: {_shown(str(error))}", file=sys.stderr)
        return error.status
    return status


def _is_not_text(word: str) -> bool:
    """Whether it holds bytes that are no UTF-8, which Python keeps as surrogates. Files may be named so."""
    if word.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in word):
        return False
    return not any(os.path.lexists(text) for text in (word, word.partition("=")[2]) if text)


def _show_what_cannot_be_encoded() -> None:
    """Writes a character that the terminal cannot show as its code, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _tell(command: str, text: str) -> None:
    name = f"kelpie {command}".rstrip()
    with suppress(OSError):  # The same full disk may hold standard error.
        print(f"{name}: {_shown(folded(text, command))}", file=sys.stderr, flush=True)


def _shown(text: str) -> str:
    """Lines stay lines; anything else that a terminal would obey is written out."""
    return "\n".join(map(harmless, text.split("\n")))


def _discard_output() -> None:
    """Python writes at its end what is left, and would complain that it cannot."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
