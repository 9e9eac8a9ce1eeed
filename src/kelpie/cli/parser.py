"""The parser of all commands: a mistake is explained with the usage of the command in which it was made."""

import argparse
import sys
from typing import Any, NoReturn


class CommandParser(argparse.ArgumentParser):
    """`usage_status` is the exit status after a mistake in the options."""

    def __init__(self, *arguments: Any, usage_status: int = 2, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._usage_status = usage_status

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self._usage_status, f"{self.prog}: error: {message}\n")

    def parse_known_args(self, *arguments: Any, **named: Any) -> Any:
        """argparse has the outermost parser complain of unknown options, with the status of that parser."""
        parsed, unknown = super().parse_known_args(*arguments, **named)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown
