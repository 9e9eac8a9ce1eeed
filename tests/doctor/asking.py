"""Which rules are asked about a case, and whether those that are not would have said the same."""

from collections.abc import Iterator
from copy import copy

from kelpie.doctor.case import Case
from kelpie.doctor.glances import Glances
from kelpie.doctor.rule import Rule
from kelpie.doctor.rules import rules
from kelpie.doctor.signs import Sign


def rules_for(case: Case) -> list[Rule]:
    """Those that judge groups of this kind."""
    return [
        rule
        for rule in rules().values()
        if rule.judge is not None and rule.judges(in_zookeeper=case.in_zookeeper, is_share=case.is_share)
    ]


def wrongly_left_out(case: Case, glances: Glances | None = None) -> Iterator[str]:
    """Each rule that is not asked, and that would have judged otherwise."""
    signs = (glances or Glances(case.cluster)).at(copy(case))
    for rule in rules_for(case):
        if not rule.asked_for & signs:
            assert rule.judge is not None
            judgement = rule.judge(copy(case))
            if judgement != rule.unasked(signs):
                yield f"{rule.code} is not asked about {case.group} with {names_of(signs)}: {judgement}"


def names_of(signs: int) -> list[str]:
    return [name for name, bit in vars(Sign).items() if isinstance(bit, int) and bit & signs]
