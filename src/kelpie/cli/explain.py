"""kelpie explain: what a finding means, how it is decided, what to do, and how to see it for yourself."""

import argparse

from kelpie.cli.command import describe
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.rule_codes import rule_code
from kelpie.cli.terminal import text_width
from kelpie.doctor.rules import rules
from kelpie.model.cells import fill


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "explain",
        description="Explains a finding of the doctor. Without a code, lists all that it can find.",
    )
    parser.set_defaults(run=_run)
    describe(
        parser,
        examples="""
            kelpie explain
                all that the doctor can find
            kelpie explain KLP101
                one of them, by its code
            kelpie explain rebalance-storm
                or by its name
        """,
        statuses={ExitStatus.OK: "it is explained"},
    )
    parser.add_argument("codes", nargs="*", metavar="CODE", help="KLP101, or its name")


def _run(arguments: argparse.Namespace) -> int:
    known = rules()
    if not arguments.codes:
        for rule in known.values():
            print(f"{rule.code}  {rule.name}")
        print("\nkelpie explain CODE tells more about one of them.")
        return ExitStatus.OK
    for number, asked in enumerate(arguments.codes):
        print(("\n" if number else "") + _wrapped(known[rule_code(asked)].page))
    return ExitStatus.OK


def _wrapped(page: str) -> str:
    width = text_width()
    return "\n\n".join(_paragraph(text, width) for text in page.split("\n\n"))


def _paragraph(text: str, width: int) -> str:
    """Items of a list begin with "- " and hang."""
    first, *items = f"\n{text}".split("\n- ")
    lines = [fill(first, width)] if first else []
    return "\n".join([*lines, *(fill(item, width, "- ", "  ") for item in items)])
