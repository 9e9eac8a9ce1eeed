"""What is left of the English text when pages say it in Chinese."""

import re
from collections.abc import Iterable

from kelpie.doctor.finding import Finding
from kelpie.web.translation import pieces_of

CHINESE = "zh-Hans"
_HAN = re.compile("[\u4e00-\u9fff]")


def chinese(text: str) -> str:
    return "".join(piece.text for piece in pieces_of(text, CHINESE))


def english_in(text: str, quoted: Iterable[str] = ()) -> list[str]:
    """Parts that are not translated, but for `quoted`: names with spaces, and what logs and brokers say."""
    known = [each for each in quoted if each]
    left = [piece.text.strip(" .") for piece in pieces_of(text, CHINESE) if piece.is_english]
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
