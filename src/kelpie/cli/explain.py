"""kelpie explain: what a finding means, how it is decided, what to do, and how to see it for yourself."""

import argparse

from kelpie.cli.command import describe
from kelpie.cli.exit_status import ExitStatus
from kelpie.cli.json_output import add_json_option, print_json
from kelpie.cli.rule_codes import rule_code
from kelpie.cli.terminal import text_width
from kelpie.doctor.rules import rules
from kelpie.documents.rules import rules_document
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
    add_json_option(parser, "explain")


def _run(arguments: argparse.Namespace) -> int:
    known = rules()
    asked_for = [known[rule_code(asked)] for asked in arguments.codes]
    if arguments.json:
        print_json(rules_document(asked_for or known.values()))
        return ExitStatus.OK
    if not asked_for:
        for rule in known.values():
            print(f"{rule.code}  {rule.name}")
        print("\nkelpie explain CODE tells more about one of them.")
        return ExitStatus.OK
    print("\n\n".join(_wrapped(rule.page) for rule in asked_for))
    return ExitStatus.OK


def _wrapped(page: str) -> str:
    width = text_width()
    return "\n\n".join(_paragraph(text, width) for text in page.split("\n\n"))


def _paragraph(text: str, width: int) -> str:
    """Items of a list begin with "- " and hang."""
    first, *items = f"\n{text}".split("\n- ")
    lines = [fill(first, width)] if first else []
    return "\n".join([*lines, *(fill(item, width, "- ", "  ") for item in items)])
