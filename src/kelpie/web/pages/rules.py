"""The rules of the doctor."""

from starlette.exceptions import HTTPException

from kelpie.doctor.rules import rules
from kelpie.web.language import N_, gettext, tag
from kelpie.web.pages.page import Page
from kelpie.web.translation import rule_paragraphs


def all_rules() -> Page:
    known = list(rules().values())
    data = {"rules": [{"code": rule.code, "name": rule.name} for rule in known]}
    return Page("rules.html", data, {"title": gettext("Rules"), "rules": known})


def one_rule(code: str) -> Page:
    rule = rules().get(code.upper())
    if rule is None:
        raise HTTPException(404, N_("There is no rule of this code."))
    data = {"code": rule.code, "name": rule.name, "text": rule.page}
    paragraphs = rule_paragraphs(rule, tag())
    return Page(
        "rule.html", data, {"title": f"{rule.code} {rule.name}", "rule": rule, "paragraphs": paragraphs}
    )
