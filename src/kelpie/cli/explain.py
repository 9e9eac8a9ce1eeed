"""kelpie explain: what a finding means, how it is decided, what to do, and how to see it for yourself."""

import argparse
import difflib
import textwrap

from kelpie.cli.command import CommandError
from kelpie.doctor.rules import rules

_WIDTH = 80


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "explain",
        help="what a finding means: its code, its rule, what to do",
        description="Explains a finding of the doctor. Without a code, lists all that it can find.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument("codes", nargs="*", metavar="CODE", help="KLP101, or its name")


def _run(arguments: argparse.Namespace) -> int:
    known = rules()
    if not arguments.codes:
        for rule in known.values():
            print(f"{rule.code}  {rule.name}")
        print("\nkelpie explain CODE tells more about one of them.")
        return 0
    by_name = {rule.name: code for code, rule in known.items()}
    for number, asked in enumerate(arguments.codes):
        code = by_name.get(asked.lower(), asked.upper())
        if code not in known:
            near = _near(asked, list(known), list(by_name))
            hint = f"Did you mean {', '.join(near)}? " if near else ""
            raise CommandError(f"There is no finding {asked!r}. {hint}kelpie explain lists them all.")
        print(("\n" if number else "") + _wrapped(known[code].page))
    return 0


def _near(asked: str, codes: list[str], names: list[str]) -> list[str]:
    """The nearest numbers, or names that are spelt alike."""
    number = asked.upper().removeprefix("KLP")
    if number.isdecimal():
        return sorted(codes, key=lambda code: abs(int(code[3:]) - int(number)))[:3]
    return difflib.get_close_matches(asked.lower(), names, 3)


def _wrapped(page: str) -> str:
    return "\n\n".join(
        textwrap.fill(text, _WIDTH, break_on_hyphens=False) if _is_too_wide(text) else text
        for text in page.split("\n\n")
    )


def _is_too_wide(paragraph: str) -> bool:
    """Lists are left as they are."""
    return "\n- " not in paragraph and any(len(line) > _WIDTH for line in paragraph.splitlines())
