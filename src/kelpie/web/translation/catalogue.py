"""Brings the catalogues of sentences and of the rules' pages up to date, for translators:
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
from kelpie.web.translation.said import KINDS, said

_FOLDER = Path(__file__).parents[1] / "locale"


def sentences(kind: str) -> Catalog:
    """What the doctor, repairs or the lab say."""
    catalogue = Catalog(project="kelpie", fuzzy=False)
    for text, module in sorted(said(kind).items(), key=lambda each: each[1]):
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
    catalogues = {kind: sentences(kind) for kind in KINDS} | {"rules": rule_pages()}
    return [
        bring_up_to_date(_FOLDER / folder / f"{name}.po", catalogue, name)
        for folder, catalogue in catalogues.items()
    ]


if __name__ == "__main__":
    for each in sys.argv[1:]:
        for path in update(each):
            sys.stdout.write(f"{path}\n")
