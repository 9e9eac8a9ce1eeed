"""Codes of findings, as people type them."""

from kelpie.cli.command import CommandError
from kelpie.doctor.rule_names import UnknownRule, rule_named


def rule_code(text: str) -> str:
    """The code that a code or a name stands for: "klp101", "coordinator-loading". Raises CommandError."""
    try:
        return rule_named(text).code
    except UnknownRule as error:
        raise CommandError(f"{error} kelpie explain lists them all.") from None
