"""kelpie --help: all commands in groups, without importing any of them; and what `kelpie` itself takes."""

import sys
from typing import Any

from kelpie import __version__
from kelpie.cli.catalogue import CATALOGUE, COMMANDS
from kelpie.cli.command import CommandParser
from kelpie.cli.environment import BOOTSTRAP, COMMAND_CONFIG, CONFIG, STATE, VARIABLES
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.manual import columns
from kelpie.cli.terminal import text_width
from kelpie.model.cells import fill
from kelpie.model.suggestions import did_you_mean

_WHAT = (
    "Finds out which Kafka consumer groups are not consuming, and why, also when the cluster is half dead."
)
_EXAMPLES = {
    "kelpie doctor -b kafka-1:9092": "which groups do not consume, why, and what to do now",
    "kelpie doctor --evidence incident/": "the same, from files alone: logs, outputs of tools, disks",
    "kelpie explain KLP101": "what a finding means, and when it is wrong",
    "kelpie lab run coordinator-outage": "watch an outage of a coordinator, in a cluster of its own",
}
_OFTEN_SET = (BOOTSTRAP, COMMAND_CONFIG, CONFIG, STATE, "NO_COLOR", "COLUMNS")


class OverviewParser(CommandParser):
    """Takes --help and --version. Whatever else comes here is a mistake."""

    def __init__(self) -> None:
        super().__init__(prog="kelpie", usage="kelpie [--help | --version] COMMAND …")
        add_version(self)
        self.add_argument("command", metavar="COMMAND", choices=COMMANDS, help="what to do")

    def format_help(self) -> str:
        return help_text()

    def _check_value(self, action: Any, value: Any) -> None:
        """A list of all commands would hide the one that was meant."""
        if value in COMMANDS:
            super()._check_value(action, value)
        else:
            hint = did_you_mean(value, COMMANDS)
            self.error(f"there is no command {value!r}. {hint}kelpie --help lists them all.")


def add_version(parser: CommandParser) -> None:
    python = ".".join(map(str, sys.version_info[:3]))
    parser.add_argument(
        "--version",
        action="version",
        version=f"kelpie {__version__} (Python {python})",
        help="say which release this is",
    )


def help_text() -> str:
    width = text_width()
    indent = max(map(len, COMMANDS)) + 4
    lines = ["usage: kelpie [--help | --version] COMMAND …", "", fill(_WHAT, width)]
    for title, commands in CATALOGUE.items():
        lines += ["", f"{title}:"]
        lines += [
            fill(text, width, f"  {name}".ljust(indent), " " * indent) for name, text in commands.items()
        ]
    lines += ["", "kelpie COMMAND --help tells all about one of them, with examples.", "", "examples:"]
    for line, text in _EXAMPLES.items():
        lines += [f"  {line}", fill(text, width, " " * 6, " " * 6)]
    lines += ["", "environment:", *columns({name: VARIABLES[name] for name in _OFTEN_SET})]
    lines += ["", "exit status:", *columns({str(int(status)): status.meaning for status in ExitStatus})]
    return "\n".join(lines) + "\n"
