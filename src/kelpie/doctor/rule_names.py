"""Rules as people call them: by code or by name, in any case."""

from kelpie.doctor.rule import Rule
from kelpie.doctor.rules import rules
from kelpie.model.kelpie_error import KelpieError
from kelpie.model.suggestions import near
from kelpie.model.words import listed

_NEAREST = 3


class UnknownRule(KelpieError):
    """There is no rule of this code or name; the text says which ones are near."""


def rule_named(text: str) -> Rule:
    """As "klp101" or "coordinator-loading". Raises UnknownRule."""
    known = rules()
    code = {rule.name: code for code, rule in known.items()}.get(text.lower(), text.upper())
    if code in known:
        return known[code]
    likely = _nearest(text)
    hint = f" Did you mean {listed(likely, 'or')}?" if likely else ""
    raise UnknownRule(f"There is no finding {text!r}.{hint}")


def _nearest(text: str) -> list[str]:
    """The nearest numbers, or names that are spelt alike."""
    known = rules()
    number = text.upper().removeprefix("KLP")
    if number.isdecimal():
        return sorted(known, key=lambda code: abs(int(code[3:]) - int(number)))[:_NEAREST]
    return near(text, [*(rule.name for rule in known.values()), *known])
