"""A diagnosis on one screen: what is wrong, whom it hits, what to do. `full` has the evidence.

A cause is told with what follows from it under it. However many groups there are, the page stays a page:
every finding is told, named in a line, or counted.
"""

from collections.abc import Collection, Iterator, Sequence

from kelpie.doctor.chapters import Brief, Chapter, Part, brief
from kelpie.doctor.diagnosis import Diagnosis
from kelpie.doctor.finding import Severity
from kelpie.doctor.rendering.page import Page, commands_by_advice, names
from kelpie.doctor.report import is_judged, missing_by_want, nobody_answered, others, reasons, verdict
from kelpie.model.quoting import harmless
from kelpie.model.words import counted, duration, listed, moment

_MOST_NAMES = 6
_MOST_CONSEQUENCES = 6
_MOST_ADVICE = (3, 2, 1)
"""With one, two and three chapters on the page."""
_MOST_NOTICES = 6
_MOST_LINES = 3
_LONGEST_TEXT = 300
_LAST_RESORT = "Last resort"


def lines(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    told = brief(diagnosis)
    yield from page.headline(verdict(diagnosis), diagnosis.worst)
    if not told.chapters and is_judged(diagnosis):
        yield from _calm(diagnosis, told, page)
        return
    if also := others(diagnosis):
        yield from page.wrapped(also, "", "")
    said: set[str] = set()
    for chapter in told.chapters:
        yield ""
        yield from _chapter(diagnosis, chapter, page)
        said.add(chapter.cause.code)
        yield from _advice(chapter, page, _MOST_ADVICE[len(told.chapters) - 1], said)
    rest = [
        *_further(told, page),
        *_notices(told, page),
        *_acknowledged(told, page),
        *_unknown(diagnosis, page),
    ]
    if rest and told.chapters:
        yield ""
    yield from rest
    if told.chapters or rest:
        yield "--full shows the evidence, all groups and all that is undetermined."


def _calm(diagnosis: Diagnosis, told: Brief, page: Page) -> Iterator[str]:
    """Nothing is wrong: three lines in all."""
    parts = [part for chapter in told.notices for part in chapter.parts]
    if parts:
        texts = [f"{part.code} ({_whom(part)})" for part in parts]
        most = len(texts)
        while len(text := f"Notices: {names(texts, most)}.") > page.width and most > 1:
            most -= 1
        yield harmless(text)
    yield from _acknowledged(told, page)
    lacking = {code for want in missing_by_want(diagnosis) for code in want.codes}
    unasked = len(diagnosis.unasked)
    open_ends = [f"{counted(len(lacking), 'rule')} lacked data"] if lacking else []
    open_ends += [f"{counted(unasked, 'thing')} could not be asked"] if unasked else []
    if told.notices or open_ends:
        yield from page.wrapped(f"{listed(open_ends)}; --full tells more.".lstrip("; "), "", "  ")


def _chapter(diagnosis: Diagnosis, chapter: Chapter, page: Page) -> Iterator[str]:
    cause, groups = chapter.cause, chapter.groups
    hit = f" · {counted(len(groups), 'group')}" if groups else ""
    yield f"{page.severity(chapter.severity)} {cause.code} {cause.name}{hit}"
    yield from page.wrapped(_short(cause.findings[0].summary), "  ", "  ")
    yield from _others(diagnosis, cause, page)
    for number, part in enumerate(chapter.consequences[:_MOST_CONSEQUENCES]):
        start = "  and so: " if not number else "          "
        yield from page.wrapped(_consequence(diagnosis, part), start, " " * 12)
    more = chapter.consequences[_MOST_CONSEQUENCES:]
    if more:
        yield from page.wrapped(", ".join(map(_counted, more)), "          also ", " " * 12)


def _others(diagnosis: Diagnosis, part: Part, page: Page) -> Iterator[str]:
    """The other findings of the same code: groups with their own numbers, or sentences about the cluster."""
    rest = part.findings[1:]
    if not rest:
        return
    groups = [group for group in part.groups if group != part.findings[0].group]
    if groups:
        text = f"{counted(len(groups), 'more group')}: {_groups(diagnosis, groups)}"
        yield from page.wrapped(text, "  ", "    ")
    sentences = [finding.summary for finding in rest if finding.group is None]
    for sentence in sentences[:_MOST_LINES]:
        yield from page.wrapped(_short(sentence), "  ", "  ")
    if len(sentences) > _MOST_LINES:
        yield f"  … and {counted(len(sentences) - _MOST_LINES, 'more finding')} like these"


def _consequence(diagnosis: Diagnosis, part: Part) -> str:
    """What follows for whom: "2 groups have stopped (KLP310): a (12 records for 3 min), b"."""
    if not part.groups:
        number = f", {len(part.findings):,} findings" if len(part.findings) > 1 else ""
        return f"{part.code}{number}: {_short(part.findings[0].summary)}"
    return f"{_counted(part)}: {_groups(diagnosis, part.groups)}"


def _counted(part: Part) -> str:
    """As in "2 groups have stopped (KLP310)"."""
    words = part.presentation
    said = words.of_one if len(part.groups) == 1 else words.of_many
    if not part.groups:
        return f"{counted(len(part.findings), 'finding')} {part.name} ({part.code})"
    return f"{counted(len(part.groups), 'group')} {said or f'with {part.name}'} ({part.code})"


def _groups(diagnosis: Diagnosis, groups: Sequence[str]) -> str:
    """As in "a (12 records waiting for 3 min), b (4 for 1 min), c", as far as that is known."""
    texts: list[str] = []
    what = " records waiting"
    for group in groups[:_MOST_NAMES]:
        waiting = diagnosis.waiting.get(group)
        if waiting is None:
            texts.append(group)
            continue
        age = f" for {duration(diagnosis.cluster.now - waiting.since)}" if waiting.since is not None else ""
        texts.append(f"{group} ({waiting.records:,}{what}{age})")
        what = ""
    return names([*texts, *groups[_MOST_NAMES:]], _MOST_NAMES)


def _advice(chapter: Chapter, page: Page, most: int, said: Collection[str]) -> Iterator[str]:
    """First steps, each with one command. A last resort needs more than a glance: `full` has it.

    `said`: the codes of the causes whose advice is on the page, this one among them.
    """
    by_advice: dict[str, list[str]] = {}
    for part in chapter.parts:
        for text, commands in commands_by_advice(part.findings, said).items():
            by_advice.setdefault(text, commands)
    if not by_advice:
        return
    yield "  What to do:"
    shown = [text for text in by_advice if not text.startswith(_LAST_RESORT)][:most]
    for text in shown:
        yield from page.wrapped(_short(text), "  - ", "    ")
        commands = by_advice[text]
        if commands:
            yield f"      $ {harmless(commands[0])}"
        if len(commands) > 1:
            yield f"      … and {len(commands) - 1:,} more such; --full has them all"
    if len(by_advice) > len(shown):
        more = counted(len(by_advice) - len(shown), "more piece", "more pieces")
        yield f"  - {more} of advice: --full"


def _further(told: Brief, page: Page) -> Iterator[str]:
    """What is wrong besides, a line each; the rest is counted."""
    for chapter in told.lines:
        so = f"; and so: {', '.join(map(_counted, chapter.consequences))}" if chapter.consequences else ""
        head = f"{page.severity(chapter.severity)} {chapter.cause.code}: "
        yield from page.wrapped_after(head, len(chapter.severity.name) + 9, _line(chapter.cause) + so)
    if told.counted:
        number = sum(len(chapter.findings) for chapter in told.counted)
        yield f"… and {counted(number, 'more finding')}; --full has them all."


def _line(part: Part) -> str:
    if not part.groups:
        more = f" ({len(part.findings) - 1} more like this)" if len(part.findings) > 1 else ""
        return _short(part.findings[0].summary) + more
    if len(part.findings) == 1:
        return _short(part.findings[0].summary)
    words = part.presentation.of_many if len(part.groups) > 1 else part.presentation.of_one
    groups = names(part.groups, _MOST_NAMES)
    return f"{counted(len(part.groups), 'group')} {words or f'with {part.name}'}: {groups}"


def _notices(told: Brief, page: Page) -> Iterator[str]:
    """All notices in a sentence."""
    parts = [part for chapter in told.notices for part in chapter.parts]
    if not parts:
        return
    texts = [f"{part.code} {part.name} ({_whom(part)})" for part in parts]
    number = sum(len(part.findings) for part in parts[_MOST_NOTICES:])
    rest = f"; and {counted(number, 'more finding')}" if number else ""
    yield from page.wrapped(f"Notices: {'; '.join(texts[:_MOST_NOTICES])}{rest}.", "", "  ")


def _whom(part: Part) -> str:
    if not part.groups:
        return counted(len(part.findings), "finding") if len(part.findings) > 1 else "the cluster"
    return counted(len(part.groups), "group") if len(part.groups) > _MOST_LINES else ", ".join(part.groups)


def _acknowledged(told: Brief, page: Page) -> Iterator[str]:
    for known, findings in told.acknowledged[:_MOST_LINES]:
        groups = list(dict.fromkeys(each.group for each in findings if each.group is not None))
        whom = f" {names(groups, _MOST_LINES)}" if groups else ""
        text = f"Acknowledged until {moment(known.until)} by {known.by}: {known.why} ({known.code}{whom})."
        yield from page.wrapped(text, "", "  ")
    rest = sum(len(findings) for _, findings in told.acknowledged[_MOST_LINES:])
    if rest:
        yield f"Acknowledged, too: {counted(rest, 'finding')}."


def _unknown(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    """What could not be asked or judged."""
    rows = reasons(diagnosis)
    if is_judged(diagnosis) and rows:
        kinds = [
            f"{what} {things[0]}" if len(things) == 1 else f"{what} ({len(things):,})"
            for what, things, _ in rows
        ]
        text = f"Not asked: {names(kinds, _MOST_LINES)}; --full says why."
        yield from page.wrapped(text, "", "  ")
    else:
        for what, things, reason in rows[:_MOST_LINES]:
            is_named = len(things) == 1 and reason.startswith(things[0])
            whom = "" if is_named else f"{what} {names(things, _MOST_LINES)}: "
            text = f"Not asked: {whom}{_short(reason)}"
            yield from page.wrapped(text, "", "  ")
        if len(rows) > _MOST_LINES:
            yield f"Not asked, too: {sum(len(things) for _, things, _ in rows[_MOST_LINES:]):,} more."
    if nobody_answered(diagnosis):
        if diagnosis.groups:
            text = f"Known from before: {counted(len(diagnosis.groups), 'group')}"
            yield from page.wrapped(f"{text}: {names(diagnosis.groups, 2 * _MOST_NAMES)}.", "", "  ")
        return
    with_findings = {finding.group for finding in diagnosis.findings if finding.severity > Severity.NOTICE}
    gone = [group for group, _ in diagnosis.unlisted if group not in with_findings]
    if gone:
        text = (
            f"Known, and not listed now (deleted, expired, or never committed): {names(gone, _MOST_LINES)}."
        )
        yield from page.wrapped(text, "", "  ")
    yield from _undetermined(diagnosis, page)


def _undetermined(diagnosis: Diagnosis, page: Page) -> Iterator[str]:
    wants = missing_by_want(diagnosis)
    if not wants:
        return
    codes = {code for want in wants for code in want.codes}
    rest = f"; and {counted(len(wants) - 1, 'more thing')}" if len(wants) > 1 else ""
    of = f" for {counted(wants[0].groups, 'group')}" if wants[0].groups else ""
    text = f"Undetermined: {counted(len(codes), 'rule')}, for want of {wants[0].missing}{of}{rest}."
    yield from page.wrapped(text, "", "  ")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT].rstrip()} …"
