"""Codes of findings, as people type them."""

from kelpie.cli.command import CommandError
from kelpie.cli.suggestions import near
from kelpie.doctor.rules import rules
from kelpie.model.words import listed

_NEAREST = 3


def rule_code(text: str) -> str:
    """The code that a code or a name stands for: "klp101", "coordinator-loading". Raises CommandError."""
    known = rules()
    code = {rule.name: code for code, rule in known.items()}.get(text.lower(), text.upper())
    if code in known:
        return code
    likely = _nearest(text)
    hint = f"Did you mean {listed(likely, 'or')}? " if likely else ""
    raise CommandError(f"There is no finding {text!r}. {hint}kelpie explain lists them all.")


def _nearest(text: str) -> list[str]:
    """The nearest numbers, or names that are spelt alike."""
    known = rules()
    number = text.upper().removeprefix("KLP")
    if number.isdecimal():
        return sorted(known, key=lambda code: abs(int(code[3:]) - int(number)))[:_NEAREST]
    return near(text, [*(rule.name for rule in known.values()), *known])
