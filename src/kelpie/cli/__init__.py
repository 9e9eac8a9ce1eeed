"""The command line: one file per command, each with `register(subparsers)` and a function that runs it.

A command returns its exit status. It raises `CommandError` for what a user can mend; any other exception is
a defect and keeps its traceback. Only the module of the given command is imported: all of them take a second.
`catalogue` knows them by name, `overview` is the help of `kelpie` itself.

What every command has in common is here: a name that is not UTF-8, an output that cannot be written and
Ctrl-C are told in one line, whenever they come.
"""

import argparse
import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from kelpie.cli.catalogue import COMMANDS, SUMMARIES
from kelpie.cli.command import CommandError, CommandParser
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.overview import OverviewParser, add_version
from kelpie.cli.terminal import folded
from kelpie.model.quoting import harmless

_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


if TYPE_CHECKING:
    _SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    _SubParsers = argparse._SubParsersAction


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
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return ExitStatus.PIPE_CLOSED
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _tell(command, f"Writing failed: {error.strerror}.")
        _discard_output()
        return ExitStatus.CANNOT_WRITE


def parser(command: str = "") -> CommandParser:
    """The parser of one command, or of all. It imports the modules of those that it knows."""
    whole = CommandParser(
        prog="kelpie", description="Finds out which Kafka consumer groups are not consuming, and why."
    )
    add_version(whole)
    commands = whole.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands", action=_Commands
    )
    for name in [command] if command else COMMANDS:
        importlib.import_module(f"{__name__}.{name.replace('-', '_')}").register(commands)
    return whole


class _Commands(_SubParsers):
    """Takes the line about each command from the catalogue."""

    def add_parser(self, name: str, **named: Any) -> Any:
        return super().add_parser(name, **{**named, "help": SUMMARIES[name]})


def _run(words: Sequence[str], command: str) -> int:
    unreadable = next((word for word in words if _is_not_text(word)), None)
    if unreadable is not None:
        _tell(
            command,
            f"'{unreadable}' is not UTF-8, and names no file. Kafka keeps names as UTF-8; a group "
            "whose client sent other bytes is listed with U+FFFD in their place. Give the name as kelpie "
            "doctor shows it.",
        )
        return ExitStatus.USAGE
    with _no_collections():
        known = parser(command) if command else OverviewParser()
    arguments = known.parse_args(words)
    try:
        if complete := getattr(arguments, "complete", None):
            complete(arguments)
        status: int = arguments.run(arguments)
    except CommandError as error:
        _tell(arguments.command, str(error))
        return error.status
    return status


@contextmanager
def _no_collections() -> Iterator[None]:
    """While modules are imported: they keep all that they make, and looking for garbage takes a tenth of the
    time.
    """
    is_usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_usual:
            gc.enable()


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
    label = f"{f'kelpie {command}'.rstrip()}: "
    with suppress(OSError):  # The same full disk may hold standard error.
        print(folded(_shown(text), label), file=sys.stderr, flush=True)


def _shown(text: str) -> str:
    """Lines stay lines; anything else that a terminal would obey is written out."""
    return "\n".join(map(harmless, text.split("\n")))


def _discard_output() -> None:
    """Python writes at its end what is left, and would complain that it cannot."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
