"""What is left of the English text when pages say it in Chinese."""

import re
from collections.abc import Iterable

from kelpie.doctor.finding import Finding
from kelpie.repair.plan import Plan
from kelpie.web.translation import pieces_of
from kelpie.web.translation.said import DOCTOR, REPAIRS
from kelpie.web.translation.translator import LONGEST

CHINESE = "zh-Hans"
WORDS = ("NOTE", "CHANGE", "GROUP HAS", "GOES BACK TO")
"""Columns of tables that have words in them; others have names and numbers."""
_HAN = re.compile("[\u4e00-\u9fff]")


def chinese(text: str, kind: str = DOCTOR) -> str:
    return "".join(piece.text for piece in pieces_of(text, CHINESE, kind))


def english_in(text: str, quoted: Iterable[str] = (), kind: str = DOCTOR) -> list[str]:
    """Parts that are not translated, but for `quoted`: names with spaces, and what logs and brokers say."""
    known = [each for each in quoted if each]
    left = [piece.text.strip(" .") for piece in pieces_of(text, CHINESE, kind) if piece.is_english]
    return [part for part in left if not any(part in each or each in part for each in known)]


def english_left(finding: Finding) -> list[str]:
    """Of what a finding says and advises. Evidence may be a line of a log, and is not judged here."""
    names = [finding.group or "", finding.cause, *finding.members, *finding.partitions]
    if any(" " in name for name in names):
        return []  # A name with spaces may look like anything.
    quoted = [piece.text for piece in finding.evidence]
    if finding.code == "KLP317":  # Why a record cannot be read, in the words of the client's log.
        quoted.append(finding.why.partition(": ")[2])
    texts = [finding.summary, finding.why, *(remedy.text for remedy in finding.remedies)]
    wrong = [f"{finding.code}: {part!r} in {text!r}" for text in texts for part in english_in(text, quoted)]
    return wrong + [f"{finding.code}: {text!r}" for text in texts if not _HAN.search(chinese(text))]


def english_left_of_plan(plan: Plan, quoted: Iterable[str] = ()) -> list[str]:
    """Of all that a page shows of a plan, but for commands and documents."""
    by_hand = [*plan.afterwards, *plan.instead, *(step.undo for step in plan.steps)]
    texts = [plan.title, *plan.seen, *plan.warnings, *plan.obstacles, *(step.text for step in by_hand)]
    texts += [text for step in plan.steps for text in (step.does, step.changes)]
    texts += [document.title for document in plan.documents]
    for table in plan.tables:
        texts += [table.title, *table.columns, *table.notes]
    cells = [
        text
        for table in plan.tables
        for row in table.rows
        for column, text in zip(table.columns, row, strict=True)
        if column in WORDS
    ]
    wrong = [f"{part!r} in a table" for text in cells for part in english_in(text, kind=REPAIRS)]
    return wrong + english_left_of_repair(texts, quoted)


def english_left_of_repair(texts: Iterable[str], quoted: Iterable[str] = ()) -> list[str]:
    """Of sentences, each of which has some Chinese in it; `quoted`: what others say."""
    said = [text for text in texts if len(text) <= LONGEST]
    known = list(quoted)
    wrong = [f"{part!r} in {text!r}" for text in said for part in english_in(text, known, REPAIRS)]
    return wrong + [f"{text!r} has no Chinese" for text in said if not _HAN.search(chinese(text, REPAIRS))]
