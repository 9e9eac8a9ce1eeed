"""`kelpie explain --json`."""

from collections.abc import Iterable
from typing import Literal

from kelpie.doctor.rule import Rule
from kelpie.documents.declaring import TypedDict, document


@document
class RuleRow(TypedDict):
    code: str
    name: str
    text: str
    """The whole page: what it sees, why it matters, how it decides, what to do, when it is wrong."""


@document
class RulesDocument(TypedDict):
    """What findings of the doctor mean."""

    version: Literal[1]
    rules: list[RuleRow]


def rules_document(rules: Iterable[Rule]) -> RulesDocument:
    return {"version": 1, "rules": list(map(rule_row, rules))}


def rule_row(rule: Rule) -> RuleRow:
    return {"code": rule.code, "name": rule.name, "text": rule.page}
