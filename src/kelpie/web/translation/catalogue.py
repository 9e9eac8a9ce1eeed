"""Brings the catalogues of the doctor's sentences and of the rules' pages up to date, for translators:
`python -m kelpie.web.translation.catalogue LANGUAGE…`.

A sentence or a paragraph whose English text has changed is without a translation then, and is shown in
English.
"""

import sys
from pathlib import Path

from babel.messages.catalog import Catalog

from kelpie.doctor.rules import rules
from kelpie.web.catalogue import bring_up_to_date
from kelpie.web.translation import paragraphs
from kelpie.web.translation.said import said

_FOLDER = Path(__file__).parents[1] / "locale"


def sentences() -> Catalog:
    catalogue = Catalog(project="kelpie", fuzzy=False)
    for text, module in sorted(said().items(), key=lambda each: each[1]):
        catalogue.add(text, locations=[(module, 0)])
    return catalogue


def rule_pages() -> Catalog:
    """Names and paragraphs of all rules."""
    catalogue = Catalog(project="kelpie", fuzzy=False)
    for rule in rules().values():
        for text in (rule.name, *paragraphs(rule)):
            catalogue.add(text, locations=[(rule.code, 0)])
    return catalogue


def update(language: str) -> list[Path]:
    name = language.replace("-", "_")
    return [
        bring_up_to_date(_FOLDER / "doctor" / f"{name}.po", sentences(), name),
        bring_up_to_date(_FOLDER / "rules" / f"{name}.po", rule_pages(), name),
    ]


if __name__ == "__main__":
    for each in sys.argv[1:]:
        for path in update(each):
            sys.stdout.write(f"{path}\n")
