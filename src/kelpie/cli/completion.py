"""kelpie completion: a script with which a shell completes commands and options. shtab writes it."""

import argparse
import os

from kelpie.cli.command import describe
from kelpie.cli.exit_status import ExitStatus

_FILES, _FOLDERS = ("FILE", "CSV", "JSON"), ("DIR", "TABLES")
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "completion",
        description="Prints a script with which a shell completes Kelpie's commands, options and their words "
        "when Tab is pressed. Print it anew after an update of Kelpie.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")
    describe(
        parser,
        examples="""
            kelpie completion bash > ~/.local/share/bash-completion/completions/kelpie
                for bash, with the package bash-completion; from the next shell on
            kelpie completion zsh > ~/.zfunc/_kelpie
                for zsh, where ~/.zshrc has: fpath+=~/.zfunc; autoload -U compinit; compinit
            kelpie completion fish > ~/.config/fish/completions/kelpie.fish
                for fish; at once
        """,
        statuses={ExitStatus.OK: "the script is printed"},
    )


def _run(arguments: argparse.Namespace) -> int:
    os.environ["COLUMNS"] = "80"  # Texts in the script do not depend on the terminal it is made in.
    import shtab  # noqa: PLC0415 - only here, and it takes as long to import as all of kelpie --help.

    from kelpie.cli import parser  # noqa: PLC0415 - it imports all commands.

    whole = parser()
    _add_known_words(whole, shtab.FILE, shtab.DIRECTORY)
    print(shtab.complete(whole, arguments.shell))
    return ExitStatus.OK


def _add_known_words(parser: argparse.ArgumentParser, file: object, folder: object) -> None:
    """What can follow an option: files, folders, codes of findings, scenarios."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _add_known_words(below, file, folder)
        elif action.metavar in _FILES:
            action.complete = file  # type: ignore[attr-defined]  # shtab looks for it.
        elif action.metavar in _FOLDERS:
            action.complete = folder  # type: ignore[attr-defined]
        elif action.metavar in ("CODE", "KLP…"):
            from kelpie.doctor.rules import rules  # noqa: PLC0415

            action.choices = list(rules())
        elif action.dest == "scenario" and not action.option_strings:
            from kelpie.lab.scenarios import scenarios  # noqa: PLC0415

            action.choices = list(scenarios())
